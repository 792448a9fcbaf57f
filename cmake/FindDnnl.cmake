# oneDNN as Debian packages it. Its own package configuration asks for an OpenCL development package that a CPU build never uses.
# The OpenMP runtime is the one that this oneDNN was built with, whatever compiler we are built with: a second one would have
# threads and settings of its own.
find_path(Dnnl_INCLUDE_DIR dnnl.h)
find_library(Dnnl_LIBRARY dnnl)
find_library(Dnnl_OPENMP NAMES libgomp.so.1 gomp)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Dnnl REQUIRED_VARS Dnnl_LIBRARY Dnnl_INCLUDE_DIR Dnnl_OPENMP)
if(Dnnl_FOUND AND NOT TARGET Dnnl::Dnnl)
  add_library(Dnnl::Dnnl UNKNOWN IMPORTED)
  set_target_properties(Dnnl::Dnnl PROPERTIES IMPORTED_LOCATION ${Dnnl_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${Dnnl_INCLUDE_DIR}
    INTERFACE_LINK_LIBRARIES ${Dnnl_OPENMP})
endif()
