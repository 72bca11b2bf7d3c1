! cleave.f90 on the ranks of an MPI program: results against loops over the global array, shared
! memory, errors. Rank 0 prints the line that the scripts read.
program fortran_ranks
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int32, int64, real64
  use mpi
  use cleave
  implicit none
  integer :: rank, ranks, ierr, passed = 0, failed = 0, wrong = 0
  type(cleave_mesh) :: line, grid

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  call cleave_create(line, MPI_COMM_WORLD, [ranks])
  call cleave_create(grid, MPI_COMM_WORLD, merge([2, ranks / 2], [1, ranks], mod(ranks, 2) == 0))
  call test_redistribution()
  call test_transform(line, "S1")
  call test_transform(grid, "S2,R")
  call test_solution(line, "S1", "R")
  call test_solution(grid, "S1,S2", "R,S1")
  call test_errors()
  call cleave_free(line)
  call cleave_free(grid)
  if (rank == 0) print "(a,i0,a,i0,a)", "cleave-cases: ", passed, " passed, ", failed, &
      " failed, 0 skipped"
  call MPI_Finalize(ierr)
  if (failed /= 0) error stop 1

contains

  subroutine expect(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what
    if (holds) return
    wrong = wrong + 1
    print "(a,i0,4a)", "rank ", rank, ": ", what, ": ", cleave_error_text()
  end subroutine

  subroutine end_case()
    integer :: all_wrong
    call MPI_Allreduce(wrong, all_wrong, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
    if (all_wrong == 0) passed = passed + 1
    if (all_wrong /= 0) failed = failed + 1
    wrong = 0
  end subroutine

  !> Columns become rows; parts are shared with the caller.
  subroutine test_redistribution()
    type(cleave_array) :: columns, rows, dealt
    integer(int32), allocatable, target :: part(:,:)
    integer(int32), pointer :: own(:,:)
    integer(int32) :: whole(5, 7)
    integer(int64), allocatable :: extents(:), begin(:)
    integer :: i, j, k
    extents = cleave_local_extents(line, [5, 7], "S2")
    k = (7 + ranks - 1) / ranks
    call expect(extents(1) == 5 .and. extents(2) == max(0, min(k, 7 - rank * k)), "extents of S2")
    allocate(part(extents(1), extents(2)))
    do j = 1, size(part, 2)
      do i = 1, 5
        part(i, j) = i + 10 * (rank * k + j)
      end do
    end do
    call cleave_adopt(columns, line, part, [5, 7], "S2")
    call expect(all(cleave_shape(columns) == [5, 7]), "the shape")
    call expect(cleave_placements(columns) == "S2", "placements as a text")
    if (size(part) > 0) call expect(c_associated(cleave_data(columns), c_loc(part)), "no copy")

    rows = cleave_redistribute(columns, "S1")
    call c_f_pointer(cleave_data(rows), own, cleave_local_extents(rows))
    if (size(own) > 0) then
      begin = cleave_local_begin(rows)
      do j = 1, 7
        do i = 1, size(own, 1)
          call expect(own(i, j) == begin(1) - 1 + i + 10 * j, "rows")
        end do
      end do
    end if
    dealt = cleave_redistribute(rows, "C2:2")
    call expect(cleave_placements(dealt) == "C2:2", "block-cyclic placements as a text")
    call cleave_full(dealt, whole)
    do j = 1, 7
      do i = 1, 5
        call expect(whole(i, j) == i + 10 * j, "the whole array")
      end do
    end do
    call cleave_free(dealt)
    dealt = cleave_redistribute(rows, "O0:1")
    call expect(cleave_placements(dealt) == "O0:1", "an owner as a text")
    if (rank == 0) call expect(all(cleave_local_extents(dealt) == [5, 7]), "the owner has it")
    part = -1
    call cleave_full(columns, whole)
    call expect(all(whole == -1), "the array sees what the program writes")
    call cleave_free(columns)
    call cleave_free(rows)
    call cleave_free(dealt)
    call end_case()
  end subroutine

  subroutine test_transform(mesh, placements)
    type(cleave_mesh), intent(in) :: mesh
    character(*), intent(in) :: placements
    complex(real64) :: given(4, 3), expected(4, 3), found(4, 3)
    complex(real64), pointer :: own(:,:)
    real(real64), parameter :: turn = 2 * acos(-1.0_real64)
    type(cleave_array) :: x, placed, modes, back
    integer :: i, j, k, l
    x = cleave_zeros(mesh, "complex128", [4, 3], "R" // repeat(",R", count([len(placements) > 2])))
    call c_f_pointer(cleave_data(x), own, cleave_local_extents(x))
    do j = 1, 3
      do i = 1, 4
        given(i, j) = cmplx(i * i - j, 2 * j - i, real64)
      end do
    end do
    own = given
    do j = 1, 3
      do i = 1, 4
        expected(i, j) = 0
        do l = 1, 3
          do k = 1, 4
            expected(i, j) = expected(i, j) + given(k, l) * exp(cmplx(0, -turn * &
                ((i - 1) * (k - 1) / 4.0_real64 + (j - 1) * (l - 1) / 3.0_real64), real64))
          end do
        end do
      end do
    end do
    placed = cleave_redistribute(x, placements)
    modes = cleave_fft(placed)
    call expect(cleave_placements(modes) == placements, "modes are placed as the array")
    call cleave_full(modes, found)
    call expect(all(abs(found - expected) < 1e-12_real64), "the modes")
    back = cleave_fft(modes, inverse=.true.)
    call cleave_full(back, found)
    call expect(all(abs(found - given) < 1e-14_real64), "the inverse")
    call cleave_free(x)
    call cleave_free(placed)
    call cleave_free(modes)
    call cleave_free(back)
    call end_case()
  end subroutine

  subroutine test_solution(mesh, of_matrix, of_right)
    type(cleave_mesh), intent(in) :: mesh
    character(*), intent(in) :: of_matrix, of_right
    integer, parameter :: n = 8, k = 3
    real(real64) :: a(n, n), b(n, k), x(n, k)
    real(real64), pointer :: own(:,:)
    type(cleave_array) :: matrix, right, placed_matrix, placed_right, solution
    character(:), allocatable :: everywhere
    integer :: i, j, stat
    everywhere = "R" // repeat(",R", count([index(of_matrix, ",") > 0]))
    do j = 1, n
      do i = 1, n
        a(i, j) = mod(7 * i + 3 * j * j, 11) + merge(40, 0, i == j)  ! not symmetric
      end do
    end do
    do j = 1, k
      b(:, j) = [(mod(5 * i + j, 7), i = 1, n)]
    end do
    matrix = cleave_zeros(mesh, "float64", [n, n], everywhere)
    right = cleave_zeros(mesh, "float64", [n, k], everywhere)
    call c_f_pointer(cleave_data(matrix), own, cleave_local_extents(matrix))
    own = a
    call c_f_pointer(cleave_data(right), own, cleave_local_extents(right))
    own = b
    placed_matrix = cleave_redistribute(matrix, of_matrix)
    placed_right = cleave_redistribute(right, of_right)
    solution = cleave_solve(placed_matrix, placed_right, stat)
    if (stat /= 0) then
      call expect(index(cleave_error_text(), "libscalapack") > 0, "the error names what is missing")
    else
      call expect(cleave_placements(solution) == of_right, "the solution is placed as the right side")
      call cleave_full(solution, x)
      call expect(all(abs(matmul(a, x) - b) < 1e-11_real64), "the solution")
    end if
    call cleave_free(matrix)
    call cleave_free(right)
    call cleave_free(placed_matrix)
    call cleave_free(placed_right)
    call cleave_free(solution)
    call end_case()
  end subroutine

  subroutine test_errors()
    type(cleave_array) :: x, y
    type(cleave_mesh) :: other
    real(real64), target :: part(4, 4), whole(4, 2)
    integer(int32) :: of_integers(4, 4)
    integer :: stat
    x = cleave_zeros(line, "float64", [4, 4], "S3", stat)
    call expect(stat /= 0 .and. index(cleave_error_text(), "a dimension from 0 to 1") > 0, "S3")
    call cleave_adopt(x, line, part(1:3, :), [4, 4], "R", stat)
    call expect(stat /= 0, "a part that is not contiguous")
    call cleave_adopt(x, line, part(:, 1:3), [4, 4], "R", stat)
    call expect(stat /= 0, "a part of other extents")
    call cleave_adopt(x, line, part(:, 1), [4, 4], "R", stat)
    call expect(stat /= 0, "a part of other dimensions")
    call cleave_create(other, MPI_COMM_WORLD, [ranks + 1], stat)
    call expect(stat /= 0, "a mesh of too many ranks")
    x = cleave_zeros(line, "float64", [4, 4], "R", stat)
    call expect(stat == 0, "an array")
    call cleave_full(x, of_integers, stat)
    call expect(stat /= 0, "a result of another type")
    call cleave_full(x, whole, stat)
    call expect(stat /= 0, "a result of other extents")
    y = cleave_fft(x, stat=stat)
    call expect(stat /= 0 .and. index(cleave_error_text(), "float64") > 0, "a real transform")
    call cleave_free(x)
    call cleave_free(y)
    call end_case()
  end subroutine

end program
