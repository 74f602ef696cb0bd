/* Two ranks work through one plan of message operations and stamp every one of them.
 *
 *   rank --plan plan.csv --out DIR [--transport NAME] [--block N] [--probes N] [--budget-ms N]
 *        [--gap-us N] [--canary FILE] [--cpus A,B] [--recv-delay-us N]
 *
 * Only calls of MPI 1 and 2, so that any library compiles it, SimGrid's smpicc too (with
 * -DSTEELYARD_SIMULATED, which adds --stamps-ps). Rank 0 reads the plan and gives it to rank 1. The
 * files are those of `steelyard/trace/1`. Between the first and the last stamp of a block nothing is
 * allocated and no system call is made but the library's own.
 *
 * pingpong  there and back
 * stream    one message, no answer
 * send      rank 1 has posted its receive, and says so with an empty message, before rank 0 begins
 * recv      rank 1 begins when MPI_Iprobe has seen the message and a delay has passed
 * isend     as stream with MPI_Isend and MPI_Wait
 * test      one MPI_Test of a receive that stays pending until the end of the run
 * iprobe    one MPI_Iprobe that finds nothing
 * wtime     one MPI_Wtime
 *
 * A message above INT_MAX bytes is one message of a derived type without gaps.
 *
 * Status: 0 done, 1 failed, 2 wrong request, 3 the other rank was lost.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "run.h"

/* --- operations --------------------------------------------------------------------------------- */

struct extent { MPI_Datatype type; int count; };

/* How a size is said to the library, whose counts are int. */
static struct extent extent_of(uint64_t size) {
  struct extent extent = {MPI_BYTE, (int)size};
  if (size <= INT32_MAX) return extent;
  enum { PIECE = 1 << 20 };
  MPI_Datatype piece;
  int counts[2] = {(int)(size / PIECE), (int)(size % PIECE)};
  MPI_Aint places[2] = {0, (MPI_Aint)(size / PIECE) * PIECE};
  check(MPI_Type_contiguous(PIECE, MPI_BYTE, &piece));
  MPI_Datatype types[2] = {piece, MPI_BYTE};
  check(MPI_Type_create_struct(2, counts, places, types, &extent.type));
  check(MPI_Type_commit(&extent.type));
  check(MPI_Type_free(&piece));
  extent.count = 1;
  return extent;
}

static void send_to_1(struct run *run, struct record *record, struct extent what) {
  MPI_Request request;
  int code = MPI_SUCCESS;
  if (record->op == OP_SEND)
    check(MPI_Recv(NULL, 0, MPI_BYTE, 1, TAG_READY, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  uint64_t mid = 0, end, start = now();
  if (record->op == OP_ISEND) {
    code = MPI_Isend(run->outgoing, what.count, what.type, 1, TAG_MESSAGE, MPI_COMM_WORLD, &request);
    mid = now();
    if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    code = MPI_Send(run->outgoing, what.count, what.type, 1, TAG_MESSAGE, MPI_COMM_WORLD);
    if (record->op == OP_PINGPONG) {
      mid = now();
      if (code == MPI_SUCCESS)
        code = MPI_Recv(run->incoming, what.count, what.type, 1, TAG_MESSAGE, MPI_COMM_WORLD,
                        MPI_STATUS_IGNORE);
    }
  }
  end = now();
  check(code);
  record->start = start, record->mid = mid, record->end = end;
}

/* Wait until the next message has come, and then some more: its receive finds it waiting. */
static void await_arrival(const struct run *run) {
#ifdef STEELYARD_SIMULATED
  check(MPI_Probe(0, TAG_MESSAGE, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
#else
  for (int flag = 0; !flag;) check(MPI_Iprobe(0, TAG_MESSAGE, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
#endif
  wait_ns(run->request.recv_delay_us * 1000);
}

static void receive_from_0(struct run *run, struct record *record, struct extent what) {
  MPI_Request request;
  int code;
  if (record->op == OP_RECV) await_arrival(run);
  uint64_t mid = 0, end, start = now();
  if (record->op == OP_SEND) {
    code = MPI_Irecv(run->incoming, what.count, what.type, 0, TAG_MESSAGE, MPI_COMM_WORLD, &request);
    if (code == MPI_SUCCESS) code = MPI_Send(NULL, 0, MPI_BYTE, 0, TAG_READY, MPI_COMM_WORLD);
    if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    code = MPI_Recv(run->incoming, what.count, what.type, 0, TAG_MESSAGE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (record->op == OP_PINGPONG) {
      mid = now();
      if (code == MPI_SUCCESS)
        code = MPI_Send(run->outgoing, what.count, what.type, 0, TAG_MESSAGE, MPI_COMM_WORLD);
    }
  }
  end = now();
  check(code);
  record->start = start, record->mid = mid, record->end = end;
}

static void time_call(struct run *run, struct record *record) {
  int flag = 0, code = MPI_SUCCESS;
  uint64_t end, start = now();
  switch (record->op) {
    case OP_TEST: code = MPI_Test(&run->pending, &flag, MPI_STATUS_IGNORE); break;
    case OP_IPROBE: code = MPI_Iprobe(1, TAG_MESSAGE, run->quiet, &flag, MPI_STATUS_IGNORE); break;
    default: (void)MPI_Wtime();
  }
  end = now();
  check(code);
  record->start = start, record->end = end;
}

static void execute(struct run *run, uint64_t number) {
  struct record *record = &run->records[number];
  uint32_t op = run->plan.entries[number].op;
  uint64_t size = run->plan.entries[number].size;
  run->checksum = checksum_of(run->checksum, number, op, size);
  if (is_local(op) && run->rank != 0) return;
  if (run->request.gap_us && run->rank == 0) wait_ns(run->request.gap_us * 1000);
  record->seq = (uint32_t)number, record->op = op, record->size = size;
  if (is_local(op)) {
    time_call(run, record);
    return;
  }
  struct extent what = extent_of(size);
  if (run->rank == 0)
    send_to_1(run, record, what);
  else
    receive_from_0(run, record, what);
  if (what.type != MPI_BYTE) check(MPI_Type_free(&what.type));
}

/* --- between blocks ----------------------------------------------------------------------------- */

static void probe_clocks(struct run *run, uint32_t seq, int count) {
  for (int i = 0; i < count; i++) {
    uint64_t time = 0;
    if (run->rank == 0) {
      struct probe probe = {seq, 0, now(), 0, 0};
      check(MPI_Send(&time, sizeof time, MPI_BYTE, 1, TAG_PROBE, MPI_COMM_WORLD));
      check(MPI_Recv(&time, sizeof time, MPI_BYTE, 1, TAG_PROBE, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      probe.recv0 = now(), probe.time1 = time;
      run->probes[run->probe_count++] = probe;
    } else {
      check(MPI_Recv(&time, sizeof time, MPI_BYTE, 0, TAG_PROBE, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      time = now();
      check(MPI_Send(&time, sizeof time, MPI_BYTE, 0, TAG_PROBE, MPI_COMM_WORLD));
    }
  }
}

static struct control agree_to_go_on(const struct run *run) {
  enum { MOST_FAILURES = 3 };
  uint64_t spent = (uint64_t)((double)(now() - run->begin) / STAMPS_PER_MS);
  int has_time = run->request.budget_ms == 0 || run->executed == 0 || spent < run->request.budget_ms;
  struct control control = {has_time,
                            run->canary != NULL && run->canary_failures < MOST_FAILURES};
  if (run->rank == 0)
    check(MPI_Send(&control, sizeof control, MPI_BYTE, 1, TAG_CONTROL, MPI_COMM_WORLD));
  else
    check(MPI_Recv(&control, sizeof control, MPI_BYTE, 0, TAG_CONTROL, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  return control;
}

/* Record the state of the host before operation `seq`; whether to go on. */
static int pass_block(struct run *run, uint64_t seq, int probes) {
  struct block *block = &run->blocks[run->block_count++];
  block->canary = NAN;
  block->seq = (uint32_t)seq, block->cpu = current_cpu();
  block->run_delay = run_delay_ns(), block->time = now();
  probe_clocks(run, (uint32_t)seq, probes);
  struct control control = agree_to_go_on(run);
  if (control.has_canary) {
    block->canary = time_canary(run->canary, run->rank, run->canary_count++);
    run->canary_failures = isnan(block->canary) ? run->canary_failures + 1 : 0;
  }
  return control.goes_on;
}

static void work_through(struct run *run) {
  uint64_t total = run->plan.count;
  int goes_on = pass_block(run, 0, FIRST_PROBES);
  run->begin = now(); /* the budget is for operations */
  while (run->executed < total && goes_on) {
    uint64_t left = total - run->executed;
    uint64_t end = run->executed + (left < run->request.block ? left : run->request.block);
    while (run->executed < end) execute(run, run->executed++);
    goes_on = pass_block(run, run->executed, end == total ? FIRST_PROBES : (int)run->request.probes);
  }
  if (run->executed < total) probe_clocks(run, (uint32_t)run->executed, FIRST_PROBES);
}

/* Compare what both ranks executed; releases the receive that `test` looked at. */
static int compare_ends(struct run *run) {
  uint64_t mine[2] = {run->executed, run->checksum}, theirs[2];
  int other = 1 - run->rank;
  check(MPI_Sendrecv(mine, sizeof mine, MPI_BYTE, other, TAG_END, theirs, sizeof theirs, MPI_BYTE, other,
                     TAG_END, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  if (run->rank == 1) check(MPI_Send(NULL, 0, MPI_BYTE, 0, TAG_PENDING, run->quiet));
  if (run->rank == 0) check(MPI_Wait(&run->pending, MPI_STATUS_IGNORE));
  if (mine[0] == theirs[0] && mine[1] == theirs[1]) return STATUS_DONE;
  if (run->rank == 0)
    complain("the ranks executed different plans (%" PRIu64 " operations, checksum %016" PRIx64
             "; the other %" PRIu64 ", %016" PRIx64 "): is it the same program on both hosts?",
             mine[0], mine[1], theirs[0], theirs[1]);
  return STATUS_FAILED;
}

/* --- the whole ---------------------------------------------------------------------------------- */

static int measure(struct run *run) {
  double cost_ns;
  uint64_t resolution;
  if (!give_plan(run)) return STATUS_USAGE;
  if (!all_ready(make_files(run))) return STATUS_FAILED;
  judge_clock(&cost_ns, &resolution);
  write_header(run, 0, cost_ns, resolution);
  if (!all_ready(make_buffers(run))) return STATUS_FAILED;
  share_canary(run);
  check(MPI_Comm_dup(MPI_COMM_WORLD, &run->quiet));
  run->pending = MPI_REQUEST_NULL;
  if (run->rank == 0) check(MPI_Irecv(NULL, 0, MPI_BYTE, 1, TAG_PENDING, run->quiet, &run->pending));
  run->checksum = CHECKSUM_BEGIN;
  work_through(run);
  int status = compare_ends(run);
  cut_files(run);
  write_header(run, status == STATUS_DONE, cost_ns, resolution);
  check(MPI_Comm_free(&run->quiet));
  return status;
}

int main(int argc, char **argv) {
  struct run run;
  memset(&run, 0, sizeof run);
  const char *problem = parse_request(&run.request, argc, argv);
  int known = rank_from_environment();
  int failed = known >= 0 && run.request.cpus[0] >= 0 ? pin_to(run.request.cpus[known % 2]) : 0;
  prepare_to_end_with_parent();
  MPI_Init(&argc, &argv);
  int ranks = 0, status = STATUS_USAGE;
  MPI_Comm_rank(MPI_COMM_WORLD, &run.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (known < 0 && run.request.cpus[0] >= 0) failed = pin_to(run.request.cpus[run.rank % 2]);
  if (problem != NULL || ranks != 2) {
    if (run.rank == 0) complain(problem != NULL ? "%s" : "two ranks are needed: `mpirun -np 2`", problem);
  } else {
    if (failed)
      complain("rank %d cannot be kept on CPU %d: %s", run.rank, run.request.cpus[run.rank],
               strerror(failed));
    if (all_ready(!failed)) status = measure(&run);
  }
  MPI_Finalize();
  return status;
}
