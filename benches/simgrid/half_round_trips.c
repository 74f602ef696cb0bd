/* Half round trips of given sizes in simulated time, to 17 digits: `half_round_trips SIZES`, one size
 * per line; prints half a round trip and the duration of the send [s] of each.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  int rank, size, largest = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  FILE *sizes = argc > 1 ? fopen(argv[1], "r") : NULL;
  if (sizes == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
  while (fscanf(sizes, "%d", &size) == 1)
    if (size > largest) largest = size;
  char *buffer = malloc((size_t)largest + 1);
  rewind(sizes);
  while (fscanf(sizes, "%d", &size) == 1) {
    if (rank == 0) {
      double begin = MPI_Wtime();
      MPI_Send(buffer, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
      double sent = MPI_Wtime();
      MPI_Recv(buffer, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      double end = MPI_Wtime();
      printf("%.17g %.17g\n", (end - begin) / 2, sent - begin);
    } else {
      MPI_Recv(buffer, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(buffer, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
  }
  free(buffer);
  fclose(sizes);
  MPI_Finalize();
  return 0;
}
