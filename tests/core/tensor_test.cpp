#include "core/tensor.h"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>

namespace rowan {
namespace {

TEST(Tensor, a_copy_is_a_handle_and_a_clone_is_not) {
  Tensor a = Tensor::full({2, 3}, 1);
  EXPECT_FALSE(a.shared());
  Tensor b = a;
  EXPECT_TRUE(a.shared());
  b.data()[0] = 5;
  EXPECT_EQ(a.data()[0], 5);
  const Tensor c = a.clone();
  a.data()[0] = 7;
  EXPECT_EQ(c.data()[0], 5);
  EXPECT_EQ(c.shape(), a.shape());
  b = Tensor();
  EXPECT_FALSE(a.shared());
}

TEST(Tensor, empty_is_no_tensor_and_zero_elements_are_one) {
  EXPECT_TRUE(Tensor().empty());
  EXPECT_EQ(Tensor().size(), 0);
  EXPECT_TRUE(Tensor().clone().empty());
  const Tensor none(Shape{0, 3});
  EXPECT_FALSE(none.empty());
  EXPECT_EQ(none.size(), 0);
  EXPECT_EQ(none.clone().shape(), (Shape{0, 3}));
}

TEST(Tensor, rows_and_reshape_see_the_same_storage) {
  Tensor a({2, 3, 4});
  std::iota(a.values().begin(), a.values().end(), Real(0));
  EXPECT_EQ(a.row(5)[0], 20);
  EXPECT_EQ(a.row(5).size(), 4u);
  Tensor b = a.reshape({6, 4});
  b.data()[23] = -1;
  EXPECT_EQ(a.data()[23], -1);
  EXPECT_THROW(a.reshape({5, 5}), Error);
}

TEST(Tensor, from_copies_and_item_wants_one_element) {
  const std::vector<Real> values = {1, 2, 3};
  EXPECT_EQ(Tensor::from({3}, values).data()[2], 3);
  EXPECT_THROW(Tensor::from({2}, values), Error);
  EXPECT_EQ(Tensor::scalar(4).item(), 4);
  EXPECT_EQ(Tensor::full({1, 1}, 5).item(), 5);
  EXPECT_THROW(Tensor({2}).item(), Error);
}

TEST(Tensor, storage_is_aligned_to_cache_lines) {
  for (const int64_t n : {1, 3, 100, 5000, 2000000}) {
    const Tensor t({n});
    EXPECT_EQ(reinterpret_cast<uintptr_t>(t.data()) % 64, 0u) << n;
  }
}

TEST(TensorPool, a_returned_buffer_is_used_again) {
  release_pool();
  const Real* place = nullptr;
  {
    const Tensor t({1000});
    place = t.data();
  }
  const int64_t before = pool_stats().system_allocations;
  for (int i = 0; i < 100; ++i) {
    const Tensor t({990});  // of the same size class
    EXPECT_EQ(t.data(), place);
  }
  EXPECT_EQ(pool_stats().system_allocations, before);
}

TEST(TensorPool, counts_bytes_in_use_peak_and_held) {
  release_pool();
  reset_pool_peak();
  const PoolStats before = pool_stats();
  const auto bytes = static_cast<int64_t>(sizeof(Real)) << 20;
  {
    const Tensor a({1 << 20}), b({1 << 20});
    EXPECT_EQ(pool_stats().bytes_in_use - before.bytes_in_use, 2 * bytes);
    const Tensor handle = a;
    EXPECT_EQ(pool_stats().bytes_in_use - before.bytes_in_use, 2 * bytes);
  }
  EXPECT_EQ(pool_stats().bytes_in_use, before.bytes_in_use);
  EXPECT_EQ(pool_stats().peak_bytes_in_use - before.bytes_in_use, 2 * bytes);
  EXPECT_EQ(pool_stats().bytes_held - before.bytes_held, 2 * bytes);
  release_pool();
  EXPECT_EQ(pool_stats().bytes_held, before.bytes_held);
  reset_pool_peak();
  EXPECT_EQ(pool_stats().peak_bytes_in_use, before.bytes_in_use);
}

TEST(TensorPool, wastes_at_most_an_eighth) {
  for (int64_t n = 1000; n < 100000; n = n * 9 / 8 + 1) {
    const int64_t before = pool_stats().bytes_in_use;
    const Tensor t({n});
    const int64_t taken = pool_stats().bytes_in_use - before, wanted = n * static_cast<int64_t>(sizeof(Real));
    EXPECT_GE(taken, wanted);
    EXPECT_LE(taken, wanted + wanted / 8 + 256) << n;
  }
}

TEST(TensorPool, threads_may_take_and_return_buffers_at_once) {
  const int64_t before = pool_stats().bytes_in_use;
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (int k = 0; k < 4; ++k)
    threads.emplace_back([&wrong, k] {
      for (int64_t i = 0; i < 500; ++i) {
        const Tensor t = Tensor::full({1 + i % 7 * 100}, static_cast<Real>(k));
        const Tensor copy = t.clone();
        for (Real v : copy.values()) wrong[static_cast<size_t>(k)] += v != static_cast<Real>(k);
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
  EXPECT_EQ(pool_stats().bytes_in_use, before);
}

}  // namespace
}  // namespace rowan
