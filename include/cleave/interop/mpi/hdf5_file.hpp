// HDF5's files by MPI-IO.
#pragma once

#include <cleave/core/config.hpp>

#if CLEAVE_HAS_HDF5

#include <string>

#include <hdf5.h>

#include <cleave/interop/mpi/collective_file.hpp>
#include <cleave/interop/mpi/hdf5_objects.hpp>

namespace cleave::inline v0::detail {

struct Hdf5Library {
  using Handle = hid_t;
  using Scope = Hdf5Silence;
  static constexpr hid_t none = H5I_INVALID_HID;
  static constexpr const char *create_name = "hdf5::create", *open_name = "hdf5::open",
                              *close_name = "hdf5::File::close", *file_name = "hdf5::File";

  static hid_t create(const std::string& path, MPI_Comm comm) {
    return hdf5_check(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access(comm)),
                      "H5Fcreate");
  }
  static hid_t open(const std::string& path, MPI_Comm comm) {
    return hdf5_check(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access(comm)), "H5Fopen");
  }
  static void close(hid_t file) { hdf5_check(H5Fclose(file), "H5Fclose"); }

 private:
  static Hdf5Object access(MPI_Comm comm) {
    Hdf5Object list = hdf5_list(H5P_FILE_ACCESS);
    hdf5_check(H5Pset_fapl_mpio(list, comm, MPI_INFO_NULL), "H5Pset_fapl_mpio");
    return list;
  }
};

using Hdf5File = CollectiveFile<Hdf5Library>;

}  // namespace cleave::inline v0::detail

#endif
