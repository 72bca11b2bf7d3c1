! Distributed arrays for Fortran: an array whose parts the ranks of an MPI program hold.
!
!     type(cleave_mesh) :: mesh
!     type(cleave_array) :: x, y
!     real(real64), allocatable :: part(:,:)
!     call cleave_create(mesh, MPI_COMM_WORLD, [2, 2])
!     allocate(part(..))                                   ! of cleave_local_extents(mesh, shape, "S1,S2")
!     call cleave_adopt(x, mesh, part, [800, 1000], "S1,S2")
!     y = cleave_redistribute(x, "R,S2")
!
! Arrays are in Fortran's order, and dimensions count from 1: "S1" are chunks of the first dimension,
! which is contiguous. Placements are otherwise those of cleave.h: one per axis of the mesh, R, S1,
! B1, C1:64, O0:1 (rank 0 of the axis has all of it, along dimension 1). Elements are int32, int64,
! and real and complex numbers of real32 and real64 of iso_fortran_env.
!
! Collective: cleave_create of a mesh, cleave_redistribute, cleave_full, cleave_fft, cleave_solve. A call
! that fails stops the program with a message, or sets `stat`, if it is given, to another number than
! 0; cleave_error_text() is then the message. Results are handles, which cleave_free frees; assignment
! copies the handle only. Link libcleave-c.
module cleave
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: error_unit, int32, int64, real32, real64
  implicit none
  private
  public :: cleave_mesh, cleave_array
  public :: cleave_create, cleave_adopt, cleave_zeros, cleave_free
  public :: cleave_redistribute, cleave_full, cleave_fft, cleave_solve
  public :: cleave_shape, cleave_local_extents, cleave_local_begin, cleave_data, cleave_placements
  public :: cleave_coordinate, cleave_error_text

  type :: cleave_mesh
    private
    type(c_ptr) :: handle = c_null_ptr
    integer :: axes = 0
  end type

  type :: cleave_array
    private
    type(c_ptr) :: handle = c_null_ptr
  end type

  !> Shares the memory of this rank's part, which must live as long as the array:
  !> call cleave_adopt(x, mesh, part, shape, placements [, stat])
  interface cleave_adopt
    module procedure adopt_int32, adopt_int64, adopt_float32, adopt_float64, &
                     adopt_complex64, adopt_complex128
  end interface
  !> Copies the whole array to every rank: call cleave_full(x, whole [, stat])
  interface cleave_full
    module procedure full_int32, full_int64, full_float32, full_float64, &
                     full_complex64, full_complex128
  end interface
  interface cleave_free
    module procedure free_mesh, free_array
  end interface
  !> The extents of this rank's part: of an array, or of one with a shape and placements.
  interface cleave_local_extents
    module procedure extents_of_array, extents_on_mesh
  end interface

  interface
    function c_error() bind(c, name="cleave_error") result(text)
      import :: c_ptr
      type(c_ptr) :: text
    end function
    function c_length(text) bind(c, name="strlen") result(length)
      import :: c_ptr, c_size_t
      type(c_ptr), value :: text
      integer(c_size_t) :: length
    end function
    integer(c_int) function c_mesh_create(communicator, axes, extents, mesh) &
        bind(c, name="cleave_mesh_create")
      import :: c_int, c_int64_t, c_ptr
      integer(c_int), value :: communicator, axes
      integer(c_int64_t), intent(in) :: extents(*)
      type(c_ptr), intent(inout) :: mesh
    end function
    integer(c_int) function c_mesh_coordinate(mesh, coordinate) bind(c, name="cleave_mesh_coordinate")
      import :: c_int, c_int64_t, c_ptr
      type(c_ptr), value :: mesh
      integer(c_int64_t), intent(out) :: coordinate(*)
    end function
    subroutine c_mesh_free(mesh) bind(c, name="cleave_mesh_free")
      import :: c_ptr
      type(c_ptr), value :: mesh
    end subroutine
    integer(c_int) function c_create(mesh, element, dims, shape, placements, array) &
        bind(c, name="cleave_array_create")
      import :: c_char, c_int, c_int64_t, c_ptr
      type(c_ptr), value :: mesh
      character(kind=c_char), intent(in) :: element(*), placements(*)
      integer(c_int), value :: dims
      integer(c_int64_t), intent(in) :: shape(*)
      type(c_ptr), intent(inout) :: array
    end function
    integer(c_int) function c_adopt(mesh, element, dims, shape, placements, elements, array) &
        bind(c, name="cleave_array_adopt")
      import :: c_char, c_int, c_int64_t, c_ptr
      type(c_ptr), value :: mesh, elements
      character(kind=c_char), intent(in) :: element(*), placements(*)
      integer(c_int), value :: dims
      integer(c_int64_t), intent(in) :: shape(*)
      type(c_ptr), intent(inout) :: array
    end function
    integer(c_int) function c_local_extents(mesh, dims, shape, placements, extents) &
        bind(c, name="cleave_local_extents")
      import :: c_char, c_int, c_int64_t, c_ptr
      type(c_ptr), value :: mesh
      integer(c_int), value :: dims
      integer(c_int64_t), intent(in) :: shape(*)
      character(kind=c_char), intent(in) :: placements(*)
      integer(c_int64_t), intent(out) :: extents(*)
    end function
    subroutine c_free(array) bind(c, name="cleave_array_free")
      import :: c_ptr
      type(c_ptr), value :: array
    end subroutine
    integer(c_int) function c_dims(array) bind(c, name="cleave_array_dims")
      import :: c_int, c_ptr
      type(c_ptr), value :: array
    end function
    integer(c_int) function c_shape(array, shape) bind(c, name="cleave_array_shape")
      import :: c_int, c_int64_t, c_ptr
      type(c_ptr), value :: array
      integer(c_int64_t), intent(out) :: shape(*)
    end function
    integer(c_int) function c_array_extents(array, extents) bind(c, name="cleave_array_local_extents")
      import :: c_int, c_int64_t, c_ptr
      type(c_ptr), value :: array
      integer(c_int64_t), intent(out) :: extents(*)
    end function
    integer(c_int) function c_local_begin(array, begin) bind(c, name="cleave_array_local_begin")
      import :: c_int, c_int64_t, c_ptr
      type(c_ptr), value :: array
      integer(c_int64_t), intent(out) :: begin(*)
    end function
    function c_data(array) bind(c, name="cleave_array_data") result(elements)
      import :: c_ptr
      type(c_ptr), value :: array
      type(c_ptr) :: elements
    end function
    function c_type(array) bind(c, name="cleave_array_type") result(text)
      import :: c_ptr
      type(c_ptr), value :: array
      type(c_ptr) :: text
    end function
    function c_placements(array) bind(c, name="cleave_array_placements") result(text)
      import :: c_ptr
      type(c_ptr), value :: array
      type(c_ptr) :: text
    end function
    integer(c_int) function c_redistribute(array, placements, made) &
        bind(c, name="cleave_array_redistribute")
      import :: c_char, c_int, c_ptr
      type(c_ptr), value :: array
      character(kind=c_char), intent(in) :: placements(*)
      type(c_ptr), intent(inout) :: made
    end function
    integer(c_int) function c_full(array, elements) bind(c, name="cleave_array_full")
      import :: c_int, c_ptr
      type(c_ptr), value :: array, elements
    end function
    integer(c_int) function c_fft(array, inverse, made) bind(c, name="cleave_array_fft")
      import :: c_int, c_ptr
      type(c_ptr), value :: array
      integer(c_int), value :: inverse
      type(c_ptr), intent(inout) :: made
    end function
    integer(c_int) function c_solve(a, b, transposed, x) bind(c, name="cleave_array_solve")
      import :: c_int, c_ptr
      type(c_ptr), value :: a, b
      integer(c_int), value :: transposed
      type(c_ptr), intent(inout) :: x
    end function
  end interface

contains

  !> All ranks of a communicator along axes. communicator: MPI_COMM_WORLD of `use mpi`, or
  !> comm%MPI_VAL of mpi_f08
  subroutine cleave_create(mesh, communicator, extents, stat)
    type(cleave_mesh), intent(out) :: mesh
    integer, intent(in) :: communicator, extents(:)
    integer, intent(out), optional :: stat
    mesh%axes = size(extents)
    call finish(c_mesh_create(int(communicator, c_int), size(extents, kind=c_int), &
                              int(extents, c_int64_t), mesh%handle), stat)
  end subroutine

  !> This rank's position, which counts from 0 as ranks do.
  function cleave_coordinate(mesh) result(coordinate)
    type(cleave_mesh), intent(in) :: mesh
    integer(c_int64_t) :: coordinate(mesh%axes)
    call finish(c_mesh_coordinate(mesh%handle, coordinate))
  end function

  !> An array of zeros. element: "float64", "complex128", "int32", ..; shape: of the whole array
  function cleave_zeros(mesh, element, shape, placements, stat) result(x)
    type(cleave_mesh), intent(in) :: mesh
    character(*), intent(in) :: element, placements
    integer, intent(in) :: shape(:)
    integer, intent(out), optional :: stat
    type(cleave_array) :: x
    call finish(c_create(mesh%handle, element // c_null_char, size(shape, kind=c_int), &
                         reversed(int(shape, c_int64_t)), reversed_text(placements, size(shape)), &
                         x%handle), stat)
  end function

  subroutine free_mesh(mesh)
    type(cleave_mesh), intent(inout) :: mesh
    call c_mesh_free(mesh%handle)
    mesh%handle = c_null_ptr
  end subroutine
  subroutine free_array(x)
    type(cleave_array), intent(inout) :: x
    call c_free(x%handle)
    x%handle = c_null_ptr
  end subroutine

  !> A copy under other placements.
  function cleave_redistribute(x, placements, stat) result(made)
    type(cleave_array), intent(in) :: x
    character(*), intent(in) :: placements
    integer, intent(out), optional :: stat
    type(cleave_array) :: made
    call finish(c_redistribute(x%handle, reversed_text(placements, int(c_dims(x%handle))), &
                               made%handle), stat)
  end function

  !> The Fourier transform of all dimensions of a complex array, placed as x; `inverse` divides by the
  !> number of elements.
  function cleave_fft(x, inverse, stat) result(made)
    type(cleave_array), intent(in) :: x
    logical, intent(in), optional :: inverse
    integer, intent(out), optional :: stat
    type(cleave_array) :: made
    integer(c_int) :: backward
    backward = 0
    if (present(inverse)) backward = merge(1_c_int, 0_c_int, inverse)
    call finish(c_fft(x%handle, backward, made%handle), stat)
  end function

  !> x with a x = b, by ScaLAPACK. a: (n, n), b: (n, k); placed as b
  function cleave_solve(a, b, stat) result(x)
    type(cleave_array), intent(in) :: a, b
    integer, intent(out), optional :: stat
    type(cleave_array) :: x
    call finish(c_solve(a%handle, b%handle, 1_c_int, x%handle), stat)
  end function

  !> The extents of the whole array.
  function cleave_shape(x) result(shape)
    type(cleave_array), intent(in) :: x
    integer(c_int64_t), allocatable :: shape(:)
    allocate(shape(c_dims(x%handle)))
    call finish(c_shape(x%handle, shape))
    shape = reversed(shape)
  end function

  function extents_of_array(x) result(extents)
    type(cleave_array), intent(in) :: x
    integer(c_int64_t), allocatable :: extents(:)
    allocate(extents(c_dims(x%handle)))
    call finish(c_array_extents(x%handle, extents))
    extents = reversed(extents)
  end function
  function extents_on_mesh(mesh, shape, placements, stat) result(extents)
    type(cleave_mesh), intent(in) :: mesh
    integer, intent(in) :: shape(:)
    character(*), intent(in) :: placements
    integer, intent(out), optional :: stat
    integer(c_int64_t) :: extents(size(shape))
    extents = 0
    call finish(c_local_extents(mesh%handle, size(shape, kind=c_int), &
                                reversed(int(shape, c_int64_t)), &
                                reversed_text(placements, size(shape)), extents), stat)
    extents = reversed(extents)
  end function

  !> The global index of this rank's first element, which counts from 1; an error under C.
  function cleave_local_begin(x, stat) result(begin)
    type(cleave_array), intent(in) :: x
    integer, intent(out), optional :: stat
    integer(c_int64_t), allocatable :: begin(:)
    allocate(begin(c_dims(x%handle)), source=-1_c_int64_t)
    call finish(c_local_begin(x%handle, begin), stat)
    begin = reversed(begin) + 1
  end function

  !> This rank's elements: call c_f_pointer(cleave_data(x), part, cleave_local_extents(x))
  function cleave_data(x) result(elements)
    type(cleave_array), intent(in) :: x
    type(c_ptr) :: elements
    elements = c_data(x%handle)
  end function

  function cleave_placements(x) result(text)
    type(cleave_array), intent(in) :: x
    character(:), allocatable :: text
    text = reversed_text(text_of(c_placements(x%handle)), int(c_dims(x%handle)))
    text = text(1:len(text) - 1)
  end function

  !> The message of the last call that failed.
  function cleave_error_text() result(text)
    character(:), allocatable :: text
    text = text_of(c_error())
  end function

  subroutine adopt_int32(x, mesh, part, shape, placements, stat)
    type(cleave_array), intent(out) :: x
    type(cleave_mesh), intent(in) :: mesh
    integer(int32), intent(in), target :: part(..)
    integer, intent(in) :: shape(:)
    character(*), intent(in) :: placements
    integer, intent(out), optional :: stat
    call adopt_bytes(x, mesh, "int32", c_loc(part), own_shape(part), is_contiguous(part), &
                     shape, placements, stat)
  end subroutine

  subroutine full_int32(x, whole, stat)
    type(cleave_array), intent(in) :: x
    integer(int32), intent(inout), target :: whole(..)
    integer, intent(out), optional :: stat
    call full_bytes(x, "int32", c_loc(whole), own_shape(whole), is_contiguous(whole), stat)
  end subroutine

  subroutine adopt_int64(x, mesh, part, shape, placements, stat)
    type(cleave_array), intent(out) :: x
    type(cleave_mesh), intent(in) :: mesh
    integer(int64), intent(in), target :: part(..)
    integer, intent(in) :: shape(:)
    character(*), intent(in) :: placements
    integer, intent(out), optional :: stat
    call adopt_bytes(x, mesh, "int64", c_loc(part), own_shape(part), is_contiguous(part), &
                     shape, placements, stat)
  end subroutine

  subroutine full_int64(x, whole, stat)
    type(cleave_array), intent(in) :: x
    integer(int64), intent(inout), target :: whole(..)
    integer, intent(out), optional :: stat
    call full_bytes(x, "int64", c_loc(whole), own_shape(whole), is_contiguous(whole), stat)
  end subroutine

  subroutine adopt_float32(x, mesh, part, shape, placements, stat)
    type(cleave_array), intent(out) :: x
    type(cleave_mesh), intent(in) :: mesh
    real(real32), intent(in), target :: part(..)
    integer, intent(in) :: shape(:)
    character(*), intent(in) :: placements
    integer, intent(out), optional :: stat
    call adopt_bytes(x, mesh, "float32", c_loc(part), own_shape(part), is_contiguous(part), &
                     shape, placements, stat)
  end subroutine

  subroutine full_float32(x, whole, stat)
    type(cleave_array), intent(in) :: x
    real(real32), intent(inout), target :: whole(..)
    integer, intent(out), optional :: stat
    call full_bytes(x, "float32", c_loc(whole), own_shape(whole), is_contiguous(whole), stat)
  end subroutine

  subroutine adopt_float64(x, mesh, part, shape, placements, stat)
    type(cleave_array), intent(out) :: x
    type(cleave_mesh), intent(in) :: mesh
    real(real64), intent(in), target :: part(..)
    integer, intent(in) :: shape(:)
    character(*), intent(in) :: placements
    integer, intent(out), optional :: stat
    call adopt_bytes(x, mesh, "float64", c_loc(part), own_shape(part), is_contiguous(part), &
                     shape, placements, stat)
  end subroutine

  subroutine full_float64(x, whole, stat)
    type(cleave_array), intent(in) :: x
    real(real64), intent(inout), target :: whole(..)
    integer, intent(out), optional :: stat
    call full_bytes(x, "float64", c_loc(whole), own_shape(whole), is_contiguous(whole), stat)
  end subroutine

  subroutine adopt_complex64(x, mesh, part, shape, placements, stat)
    type(cleave_array), intent(out) :: x
    type(cleave_mesh), intent(in) :: mesh
    complex(real32), intent(in), target :: part(..)
    integer, intent(in) :: shape(:)
    character(*), intent(in) :: placements
    integer, intent(out), optional :: stat
    call adopt_bytes(x, mesh, "complex64", c_loc(part), own_shape(part), is_contiguous(part), &
                     shape, placements, stat)
  end subroutine

  subroutine full_complex64(x, whole, stat)
    type(cleave_array), intent(in) :: x
    complex(real32), intent(inout), target :: whole(..)
    integer, intent(out), optional :: stat
    call full_bytes(x, "complex64", c_loc(whole), own_shape(whole), is_contiguous(whole), stat)
  end subroutine

  subroutine adopt_complex128(x, mesh, part, shape, placements, stat)
    type(cleave_array), intent(out) :: x
    type(cleave_mesh), intent(in) :: mesh
    complex(real64), intent(in), target :: part(..)
    integer, intent(in) :: shape(:)
    character(*), intent(in) :: placements
    integer, intent(out), optional :: stat
    call adopt_bytes(x, mesh, "complex128", c_loc(part), own_shape(part), is_contiguous(part), &
                     shape, placements, stat)
  end subroutine

  subroutine full_complex128(x, whole, stat)
    type(cleave_array), intent(in) :: x
    complex(real64), intent(inout), target :: whole(..)
    integer, intent(out), optional :: stat
    call full_bytes(x, "complex128", c_loc(whole), own_shape(whole), is_contiguous(whole), stat)
  end subroutine

  subroutine adopt_bytes(x, mesh, element, part, own, contiguous, shape, placements, stat)
    type(cleave_array), intent(inout) :: x
    type(cleave_mesh), intent(in) :: mesh
    character(*), intent(in) :: element, placements
    type(c_ptr), intent(in) :: part
    integer(int64), intent(in) :: own(:)
    logical, intent(in) :: contiguous
    integer, intent(in) :: shape(:)
    integer, intent(out), optional :: stat
    integer(c_int64_t) :: expected(size(shape))
    integer :: status
    expected = extents_on_mesh(mesh, shape, placements, status)
    if (status == 0) then
      if (size(own) /= size(shape)) then
        call refuse("cleave_adopt: the part and the shape have different numbers of dimensions", stat)
        return
      else if (.not. contiguous) then
        call refuse("cleave_adopt: the part is not contiguous in memory", stat)
        return
      else if (any(own /= expected)) then
        call refuse("cleave_adopt: the part does not have the extents of cleave_local_extents", stat)
        return
      end if
      status = c_adopt(mesh%handle, element // c_null_char, size(shape, kind=c_int), &
                       reversed(int(shape, c_int64_t)), reversed_text(placements, size(shape)), part, &
                       x%handle)
    end if
    call finish(int(status, c_int), stat)
  end subroutine

  subroutine full_bytes(x, element, whole, own, contiguous, stat)
    type(cleave_array), intent(in) :: x
    character(*), intent(in) :: element
    type(c_ptr), intent(in) :: whole
    integer(int64), intent(in) :: own(:)
    logical, intent(in) :: contiguous
    integer, intent(out), optional :: stat
    if (text_of(c_type(x%handle)) /= element) then
      call refuse("cleave_full: the array has elements of " // text_of(c_type(x%handle)) // ", not " // &
                  element, stat)
    else if (size(own) /= c_dims(x%handle)) then
      call refuse("cleave_full: the arrays have different numbers of dimensions", stat)
    else if (.not. contiguous) then
      call refuse("cleave_full: the result is not contiguous in memory", stat)
    else if (any(own /= cleave_shape(x))) then
      call refuse("cleave_full: the arrays have different extents", stat)
    else
      call finish(c_full(x%handle, whole), stat)
    end if
  end subroutine

  !> The extents of an array of any rank.
  function own_shape(x) result(extents)
    type(*), intent(in) :: x(..)
    integer(int64), allocatable :: extents(:)
    integer :: d
    allocate(extents(rank(x)))
    do d = 1, rank(x)
      extents(d) = size(x, d, kind=int64)
    end do
  end function

  pure function reversed(values) result(backward)
    integer(c_int64_t), intent(in) :: values(:)
    integer(c_int64_t) :: backward(size(values))
    backward = values(size(values):1:-1)
  end function

  !> A text of placements with dimension d as dims - d, which leads from Fortran's dimensions to C's,
  !> and back; with a null character at the end. What is no dimension stays for C to refuse.
  pure function reversed_text(text, dims) result(made)
    character(*), intent(in) :: text
    integer, intent(in) :: dims
    character(:), allocatable :: made
    integer :: i, d
    logical :: owner
    made = text // c_null_char
    owner = .false.
    do i = 1, len(text) - 1
      if (text(i:i) == "O") owner = .true.
      if (text(i:i) == ",") owner = .false.
      if (.not. (scan(text(i:i), "SBC") == 1 .or. (owner .and. text(i:i) == ":"))) cycle
      d = dims - (iachar(text(i+1:i+1)) - iachar("0"))
      if (d >= 0 .and. d <= dims) made(i+1:i+1) = achar(iachar("0") + d)
    end do
  end function

  function text_of(c_text) result(text)
    type(c_ptr), intent(in) :: c_text
    character(:), allocatable :: text
    character(kind=c_char), pointer :: letters(:)
    integer :: i
    call c_f_pointer(c_text, letters, [c_length(c_text)])
    allocate(character(size(letters)) :: text)
    do i = 1, size(letters)
      text(i:i) = letters(i)
    end do
  end function

  !> Sets `stat`, or stops the program after an error.
  subroutine finish(status, stat)
    integer(c_int), intent(in) :: status
    integer, intent(out), optional :: stat
    if (present(stat)) then
      stat = int(status)
    else if (status /= 0) then
      write (error_unit, "(a)") cleave_error_text()
      error stop 1
    end if
  end subroutine
  subroutine refuse(message, stat)
    character(*), intent(in) :: message
    integer, intent(out), optional :: stat
    if (present(stat)) stat = 1
    if (.not. present(stat)) then
      write (error_unit, "(a)") message
      error stop 1
    end if
  end subroutine

end module
