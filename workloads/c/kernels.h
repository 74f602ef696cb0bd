/* Six compute kernels on generated input; docs/reference/workloads.md defines each of them. */
#ifndef STEELYARD_KERNELS_H
#define STEELYARD_KERNELS_H

#include <stddef.h>
#include <stdint.h>

struct job {
    size_t size;       /* numbers in the input */
    size_t operations; /* operations over the input */
    uint32_t *input;   /* as generated; bsearch: sorted */
    uint32_t *keys;    /* bsearch: what is looked up */
    size_t results;    /* numbers in the result */
    void *result;      /* uint32_t, float or double */
};

struct kernel {
    const char *name;
    int counts_operations; /* whether --operations may be given */
    size_t result_bytes;   /* size of one number of the result */
    void (*execute)(struct job *job); /* the timed section */
    const char *(*check)(const struct job *job); /* what is wrong with the result, or NULL */
};

extern const struct kernel kernels[];
extern const size_t kernel_count;

/* Generates the input and makes room for the result; 0 if there is not enough memory. */
int job_create(const struct kernel *kernel, struct job *job, uint64_t seed);

/* Puts a fresh copy of the input in place and touches all memory the timed section uses. */
void job_reset(const struct kernel *kernel, struct job *job);

/* FNV-1a over the words of the result. */
uint64_t job_checksum(const struct kernel *kernel, const struct job *job);

#endif
