#include "core/row_sparse_grad.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/support/compare.h"
#include "tests/support/random.h"

namespace rowan {
namespace {

using namespace test;

// Row by row in Real, in token order: the very additions that coalesce() promises.
std::map<int32_t, std::vector<Real>> summed(const Ids& ids, const Tensor& dy) {
  std::map<int32_t, std::vector<Real>> sums;
  for (int64_t i = 0; i < ids.size(); ++i) {
    const auto [at, fresh] = sums.try_emplace(ids[i], dy.row(i).begin(), dy.row(i).end());
    for (size_t j = 0; !fresh && j < at->second.size(); ++j) at->second[j] += dy.row(i)[j];
  }
  return sums;
}

void expect_equal(const RowSparseGrad& grad, const std::map<int32_t, std::vector<Real>>& expected) {
  ASSERT_EQ(grad.ids().size(), expected.size());
  int64_t k = 0;
  for (const auto& [id, row] : expected) {
    EXPECT_EQ(grad.ids()[static_cast<size_t>(k)], id);
    EXPECT_EQ(std::vector<Real>(grad.row(k).begin(), grad.row(k).end()), row) << "row of id " << id;
    ++k;
  }
}

TEST(RowSparseGrad, coalesce_sums_repeated_ids_in_token_order) {
  struct Case {
    int64_t table, tokens, width;
  };
  // Few ids: long runs, which are split by columns. Ids beyond 2^11 and 2^22 need further radix passes.
  for (const Case& c : {Case{1, 1, 1}, Case{3, 2000, 67}, Case{50, 700, 3}, Case{5000, 300, 16}, Case{100000000, 500, 5}}) {
    const Ids ids = random_ids({c.tokens}, c.table, 1);
    const Tensor dy = random_tensor({c.tokens, c.width}, 2);
    RowSparseGrad grad(c.table, c.width);
    grad.append(ids, dy);
    EXPECT_FALSE(grad.coalesced());
    grad.coalesce();
    EXPECT_TRUE(grad.coalesced());
    expect_equal(grad, summed(ids, dy));
  }
}

TEST(RowSparseGrad, counts_how_often_each_id_was_read) {
  RowSparseGrad grad(10, 1);
  grad.append(Ids({2, 2}, {3, 1, 3, 3}), Tensor::full({2, 2, 1}, 1));
  grad.coalesce();
  EXPECT_EQ(grad.counts(), (std::vector<int32_t>{1, 3}));
  grad.append(Ids({2}, {1, 9}), Tensor::full({2, 1}, 1));
  grad.coalesce();
  EXPECT_EQ(grad.ids(), (std::vector<int32_t>{1, 3, 9}));
  EXPECT_EQ(grad.counts(), (std::vector<int32_t>{2, 3, 1}));
}

TEST(RowSparseGrad, chunks_appended_before_and_after_coalesce_add_up) {
  const Ids a = random_ids({40}, 20, 1), b = random_ids({50}, 20, 2);
  const Tensor da = random_tensor({40, 7}, 3), db = random_tensor({50, 7}, 4);
  std::vector<int32_t> both(a.values().begin(), a.values().end());
  both.insert(both.end(), b.values().begin(), b.values().end());
  std::vector<Real> rows(da.values().begin(), da.values().end());
  rows.insert(rows.end(), db.values().begin(), db.values().end());
  const auto expected = summed(Ids({90}, both), Tensor::from({90, 7}, rows));
  RowSparseGrad grad(20, 7);
  grad.append(a, da);
  grad.coalesce();
  grad.append(b, db);
  grad.coalesce();
  expect_equal(grad, expected);
  RowSparseGrad at_once(20, 7);
  at_once.append(a, da);
  at_once.append(b, db);
  at_once.coalesce();
  expect_equal(at_once, expected);
}

TEST(RowSparseGrad, nothing_appended_or_no_ids_leave_it_without_rows) {
  RowSparseGrad grad(10, 4);
  grad.coalesce();
  EXPECT_TRUE(grad.empty());
  EXPECT_TRUE(grad.ids().empty());
  grad.append(Ids(Shape{0}), Tensor(Shape{0, 4}));
  grad.coalesce();
  EXPECT_TRUE(grad.ids().empty());
  Tensor dense = Tensor::zeros({10, 4});
  grad.add_to(dense);
  for (Real v : dense.values()) EXPECT_EQ(v, 0);
}

TEST(RowSparseGrad, clear_forgets_everything) {
  RowSparseGrad grad(10, 4);
  grad.append(Ids({1}, {2}), Tensor::full({1, 4}, 1));
  grad.coalesce();
  grad.append(Ids({1}, {3}), Tensor::full({1, 4}, 1));
  grad.clear();
  EXPECT_TRUE(grad.empty());
  grad.append(Ids({1}, {5}), Tensor::full({1, 4}, 1));
  grad.coalesce();
  EXPECT_EQ(grad.ids(), (std::vector<int32_t>{5}));
  EXPECT_EQ(grad.counts(), (std::vector<int32_t>{1}));
}

TEST(RowSparseGrad, scale_and_add_to_act_on_the_touched_rows_only) {
  RowSparseGrad grad(5, 2);
  grad.append(Ids({3}, {4, 1, 4}), Tensor::from({3, 2}, std::vector<Real>{1, 2, 3, 4, 5, 6}));
  grad.coalesce();
  grad.scale(2);
  Tensor dense = Tensor::full({5, 2}, 1);
  grad.add_to(dense);
  expect_close(dense, std::vector<double>{1, 1, 7, 9, 1, 1, 1, 1, 13, 17}, 0);
  Tensor other({4, 2});
  EXPECT_THROW(grad.add_to(other), Error);
}

TEST(RowSparseGrad, a_table_of_a_hundred_million_rows_takes_memory_for_the_rows_read_only) {
  reset_pool_peak();
  const int64_t before = pool_stats().bytes_in_use;
  RowSparseGrad grad(100000000, 64);
  grad.append(random_ids({256}, 100000000, 1), Tensor::full({256, 64}, 1));
  grad.coalesce();
  EXPECT_LE(pool_stats().peak_bytes_in_use - before, 3 * 256 * 64 * static_cast<int64_t>(sizeof(Real)));
}

TEST(RowSparseGrad, same_bits_for_any_thread_count) {
  // Ids as uneven as in text: a third of the tokens are id 0.
  Ids ids = random_ids({3000}, 300, 1);
  for (int64_t i = 0; i < ids.size(); i += 3) ids[i] = 0;
  const Tensor dy = random_tensor({3000, 129}, 2);
  EXPECT_TRUE(same_bits_for_any_thread_count([&] {
    RowSparseGrad grad(300, 129);
    grad.append(ids, dy);
    grad.coalesce();
    Tensor dense = Tensor::zeros({300, 129});
    grad.add_to(dense);
    grad.scale(Real(0.3));
    return std::vector<Tensor>{grad.values(), dense};
  }));
}

TEST(RowSparseGrad, wrong_ids_and_widths_are_errors_and_change_nothing) {
  RowSparseGrad grad(10, 4);
  EXPECT_THROW(grad.append(Ids({2}, {0, 10}), Tensor({2, 4})), Error);
  EXPECT_THROW(grad.append(Ids({2}, {-1, 0}), Tensor({2, 4})), Error);
  EXPECT_THROW(grad.append(Ids({2}, {0, 1}), Tensor({2, 5})), Error);
  EXPECT_TRUE(grad.empty());
}

TEST(SortIds, is_a_stable_sort_with_the_runs_of_each_id) {
  for (const int64_t rows : {1, 5, 3000, 5000000, 2147483647}) {
    const Ids ids = random_ids({997}, rows, 3);
    const SortedIds s = sort_ids(ids.values());
    ASSERT_EQ(s.order.size(), 997u);
    ASSERT_EQ(s.begin.size(), s.unique.size() + 1);
    for (size_t k = 1; k < s.order.size(); ++k) {
      const int32_t a = ids[s.order[k - 1]], b = ids[s.order[k]];
      ASSERT_TRUE(a < b || (a == b && s.order[k - 1] < s.order[k])) << rows;
    }
    for (size_t u = 0; u < s.unique.size(); ++u)
      for (int32_t k = s.begin[u]; k < s.begin[u + 1]; ++k) ASSERT_EQ(ids[s.order[static_cast<size_t>(k)]], s.unique[u]);
    EXPECT_EQ(s.begin.back(), 997);
  }
  EXPECT_TRUE(sort_ids({}).unique.empty());
}

}  // namespace
}  // namespace rowan
