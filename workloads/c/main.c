/* The same command line, checksums and reports as `steelyard-work kernel`, compiled from C. */
#define _POSIX_C_SOURCE 200809L
#include "kernels.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { REFUSED = 1, WRONG_USAGE = 2, WRONG_RESULT = 3 };

static const char USAGE[] =
    "kernel NAME --size N [--operations M] --seed S [--repeat R] [--warmup W] [--metrics-stdout]";

#define FAIL(code, ...)                                                                                      \
    do {                                                                                                     \
        fprintf(stderr, "kernels: " __VA_ARGS__);                                                            \
        fputc('\n', stderr);                                                                                 \
        if ((code) == WRONG_USAGE)                                                                           \
            fprintf(stderr, "\nhint: usage: kernels %s\n", USAGE);                                           \
        exit(code);                                                                                          \
    } while (0)

struct option {
    const char *name;
    uint64_t smallest, largest;
    uint64_t value;
    int given;
};

enum { SIZE, OPERATIONS, SEED, REPEAT, WARMUP, OPTIONS };

static uint64_t read_number(const struct option *option, const char *text)
{
    char *end;
    errno = 0;
    uint64_t number = strtoull(text, &end, 10);
    if (errno || end == text || *end || text[0] < '0' || text[0] > '9' || number < option->smallest ||
        number > option->largest)
        FAIL(WRONG_USAGE, "`%s` is `%s`; allowed: a whole number from %" PRIu64 " to %" PRIu64, option->name,
             text, option->smallest, option->largest);
    return number;
}

static void read_options(int count, char **words, struct option *options, int *on_stdout)
{
    for (int k = 0; k < count; k++) {
        if (strcmp(words[k], "--metrics-stdout") == 0) {
            *on_stdout = 1;
            continue;
        }
        int known = 0;
        while (known < OPTIONS && strcmp(words[k], options[known].name) != 0)
            known++;
        if (known == OPTIONS)
            FAIL(WRONG_USAGE, "`%s` is unknown", words[k]);
        if (options[known].given)
            FAIL(WRONG_USAGE, "`%s` is given twice", words[k]);
        if (++k == count)
            FAIL(WRONG_USAGE, "`%s` needs a value", options[known].name);
        options[known].value = read_number(&options[known], words[k]);
        options[known].given = 1;
    }
}

/* -1 is nowhere. */
static int metrics_descriptor(int on_stdout)
{
    const char *text = getenv("STEELYARD_METRICS_FD");
    if (on_stdout)
        return STDOUT_FILENO;
    if (!text || !*text)
        return -1;
    char *end;
    long number = strtol(text, &end, 10);
    if (*end || text[0] < '0' || text[0] > '9' || number > 0x7fffffff)
        FAIL(WRONG_USAGE, "STEELYARD_METRICS_FD is `%s`; allowed: the number of an open descriptor", text);
    return (int)number;
}

static uint64_t now_ns(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static uint64_t execute(const struct kernel *kernel, struct job *job, const struct option *options, FILE *report,
                        const char *prefix)
{
    uint64_t first = 0, warm_up = options[WARMUP].value, sections = warm_up + options[REPEAT].value;
    for (uint64_t iteration = 1; iteration <= sections; iteration++) {
        job_reset(kernel, job);
        uint64_t wall = now_ns(CLOCK_MONOTONIC);
        uint64_t cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
        kernel->execute(job);
        cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
        wall = now_ns(CLOCK_MONOTONIC) - wall;
        const char *phase = iteration <= warm_up ? "warmup" : "measure";
        fprintf(report, "%scpu %" PRIu64 " ns %" PRIu64 " %s\n", prefix, cpu, iteration, phase);
        fprintf(report, "%swall %" PRIu64 " ns %" PRIu64 " %s\n", prefix, wall, iteration, phase);
        const char *wrong = kernel->check(job);
        if (wrong)
            FAIL(WRONG_RESULT, "kernel `%s` gave a wrong result: %s", kernel->name, wrong);
        uint64_t checksum = job_checksum(kernel, job);
        if (iteration == 1)
            first = checksum;
        else if (checksum != first)
            FAIL(WRONG_RESULT, "kernel `%s` gave a wrong result: iterations differ", kernel->name);
    }
    return first;
}

/* Everything at the end, so that no timed section contains a write of ours. */
static void write_report(int descriptor, const char *text, size_t length)
{
    while (descriptor >= 0 && length > 0) {
        ssize_t written = write(descriptor, text, length);
        if (written < 0)
            FAIL(REFUSED, "cannot write measurements to descriptor %d: %s", descriptor, strerror(errno));
        text += written;
        length -= (size_t)written;
    }
}

static const struct kernel *find_kernel(int count, char **words)
{
    if (count < 3 || strcmp(words[1], "kernel") != 0)
        FAIL(WRONG_USAGE, "no kernel is given");
    for (size_t k = 0; k < kernel_count; k++)
        if (strcmp(kernels[k].name, words[2]) == 0)
            return &kernels[k];
    FAIL(WRONG_USAGE, "`%s` is not a kernel; known: exp_float, exp_double, bsearch, gray2bin, insertion_sort, qsort",
         words[2]);
}

int main(int count, char **words)
{
    struct option options[OPTIONS] = {
        [SIZE] = {"--size", 1, UINT32_MAX, 0, 0},         [OPERATIONS] = {"--operations", 1, UINT32_MAX, 0, 0},
        [SEED] = {"--seed", 0, UINT64_MAX, 0, 0},         [REPEAT] = {"--repeat", 1, 1000000, 1, 0},
        [WARMUP] = {"--warmup", 0, 1000000, 0, 0},
    };
    int on_stdout = 0;
    const struct kernel *kernel = find_kernel(count, words);
    read_options(count - 3, words + 3, options, &on_stdout);
    if (!options[SIZE].given || !options[SEED].given)
        FAIL(WRONG_USAGE, "`%s` is missing", options[SIZE].given ? "--seed" : "--size");
    if (options[OPERATIONS].given && !kernel->counts_operations)
        FAIL(WRONG_USAGE, "`%s` takes no `--operations`: its size alone decides", kernel->name);
    int descriptor = metrics_descriptor(on_stdout);
    const char *prefix = descriptor == STDOUT_FILENO ? "#steelyard " : "";

    struct job job = {.size = options[SIZE].value};
    job.operations = options[OPERATIONS].given ? options[OPERATIONS].value : job.size;
    if (!job_create(kernel, &job, options[SEED].value))
        FAIL(REFUSED, "not enough memory for %zu numbers", job.size);

    char *text = NULL;
    size_t length = 0;
    FILE *report = open_memstream(&text, &length);
    if (!report)
        FAIL(REFUSED, "not enough memory for the report");
    uint64_t checksum = execute(kernel, &job, options, report, prefix);
    if (fclose(report) != 0 || printf("%016" PRIx64 "\n", checksum) < 0 || fflush(stdout) != 0)
        FAIL(REFUSED, "cannot write to standard output: %s", strerror(errno));
    write_report(descriptor, text, length);
    return 0;
}
