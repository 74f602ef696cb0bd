#include "kernels.h"

#include <stdlib.h>
#include <string.h>

/* PCG-XSH-RR 64/32, after the reference library (M. E. O'Neill, HMC-CS-2014-0905). */
struct generator {
    uint64_t state, increment;
};

static const uint64_t MULTIPLIER = 6364136223846793005u;

static uint32_t next_word(struct generator *generator)
{
    uint64_t old = generator->state;
    generator->state = old * MULTIPLIER + generator->increment;
    uint32_t shifted = (uint32_t)(((old >> 18) ^ old) >> 27);
    uint32_t turn = (uint32_t)(old >> 59);
    return (shifted >> turn) | (shifted << (-turn & 31));
}

static void draw(uint32_t *words, size_t count, uint64_t state, uint64_t stream)
{
    struct generator generator = {0, (stream << 1) | 1};
    next_word(&generator);
    generator.state += state;
    next_word(&generator);
    for (size_t k = 0; k < count; k++)
        words[k] = next_word(&generator);
}

static void draw_data(uint32_t *words, size_t count, uint64_t seed)
{
    draw(words, count, seed, 0x537465656c796172u);
}

static void draw_keys(uint32_t *words, size_t count, uint64_t seed)
{
    draw(words, count, seed ^ 0x9e3779b97f4a7c15u, 0x6c6f6f6b2d757073u);
}

/* exp_float, exp_double: (1 + x/n)^n by n successive multiplications. */

enum { FACTORS = 1024 };

static void exp_float(struct job *job)
{
    float *result = job->result;
    for (size_t k = 0, place = 0; k < job->operations; k++) {
        float base = 1.0f + (float)job->input[place] / (float)FACTORS;
        float product = 1.0f;
        for (int factor = 0; factor < FACTORS; factor++)
            product *= base;
        result[place] = product;
        if (++place == job->size)
            place = 0;
    }
}

static void exp_double(struct job *job)
{
    double *result = job->result;
    for (size_t k = 0, place = 0; k < job->operations; k++) {
        double base = 1.0 + (double)job->input[place] / (double)FACTORS;
        double product = 1.0;
        for (int factor = 0; factor < FACTORS; factor++)
            product *= base;
        result[place] = product;
        if (++place == job->size)
            place = 0;
    }
}

/* The same number by ten squarings in double precision. */
static int is_power(double power, uint32_t exponent, double relative_error)
{
    double expected = 1.0 + (double)exponent / (double)FACTORS;
    for (int doubling = 1; doubling < FACTORS; doubling *= 2)
        expected *= expected;
    double error = power > expected ? power - expected : expected - power;
    return error <= relative_error * expected;
}

/* Bounds: twice FACTORS roundings by one unit in the last place, 2^-23 and 2^-52. */

static const char *check_exp_float(const struct job *job)
{
    const float *result = job->result;
    for (size_t k = 0; k < job->results; k++)
        if (!is_power(result[k], job->input[k], 2.0 * FACTORS / 8388608.0))
            return "a power differs from the one computed by squaring";
    return NULL;
}

static const char *check_exp_double(const struct job *job)
{
    const double *result = job->result;
    for (size_t k = 0; k < job->results; k++)
        if (!is_power(result[k], job->input[k], 2.0 * FACTORS / 4503599627370496.0))
            return "a power differs from the one computed by squaring";
    return NULL;
}

/* bsearch: lower-bound look-ups. */

static void search(struct job *job)
{
    uint32_t *result = job->result;
    for (size_t k = 0; k < job->operations; k++) {
        uint32_t key = job->keys[k];
        size_t low = 0, high = job->size;
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (job->input[middle] < key)
                low = middle + 1;
            else
                high = middle;
        }
        result[k] = (uint32_t)low;
    }
}

static const char *check_search(const struct job *job)
{
    const uint32_t *result = job->result;
    for (size_t k = 0; k < job->results; k++) {
        uint32_t position = result[k], key = job->keys[k];
        if (position > job->size || (position > 0 && job->input[position - 1] >= key) ||
            (position < job->size && job->input[position] < key))
            return "a position is not the lower bound of its key";
    }
    return NULL;
}

/* gray2bin: Gray code to binary, one shift and one exclusive or per bit. */

static void decode(struct job *job)
{
    uint32_t *result = job->result;
    for (size_t k = 0, place = 0; k < job->operations; k++) {
        uint32_t number = job->input[place];
        for (uint32_t mask = number >> 1; mask != 0; mask >>= 1)
            number ^= mask;
        result[place] = number;
        if (++place == job->size)
            place = 0;
    }
}

static const char *check_decode(const struct job *job)
{
    const uint32_t *result = job->result;
    for (size_t k = 0; k < job->results; k++)
        if ((result[k] ^ (result[k] >> 1)) != job->input[k])
            return "a number does not encode to its Gray code";
    return NULL;
}

/* insertion_sort, qsort: in place, on the copy of the input in the result. */

static void insertion_sort(struct job *job)
{
    uint32_t *numbers = job->result;
    for (size_t end = 1; end < job->size; end++) {
        uint32_t number = numbers[end];
        size_t place = end;
        while (place > 0 && numbers[place - 1] > number) {
            numbers[place] = numbers[place - 1];
            place--;
        }
        numbers[place] = number;
    }
}

/* Hoare's partition around the middle element. */
static void sort_range(uint32_t *numbers, size_t count)
{
    if (count < 2)
        return;
    uint32_t pivot = numbers[(count - 1) / 2];
    size_t left = 0, right = count;
    while (left < right) {
        while (numbers[left] < pivot)
            left++;
        while (numbers[right - 1] > pivot)
            right--;
        if (left < right) {
            uint32_t number = numbers[left];
            numbers[left] = numbers[right - 1];
            numbers[right - 1] = number;
            left++;
            right--;
        }
    }
    sort_range(numbers, right);
    sort_range(numbers + left, count - left);
}

static void quick_sort(struct job *job)
{
    sort_range(job->result, job->size);
}

/* A sum that ignores the order of the numbers and changes when one of them changes. */
static uint64_t multiset_sum(const uint32_t *numbers, size_t count)
{
    uint64_t sum = 0;
    for (size_t k = 0; k < count; k++) {
        uint64_t word = (numbers[k] ^ 0x9e3779b97f4a7c15u) * MULTIPLIER;
        sum += word ^ (word >> 32);
    }
    return sum;
}

static const char *check_sort(const struct job *job)
{
    const uint32_t *numbers = job->result;
    for (size_t k = 1; k < job->size; k++)
        if (numbers[k - 1] > numbers[k])
            return "two neighbours are in the wrong order";
    if (multiset_sum(numbers, job->size) != multiset_sum(job->input, job->size))
        return "the sorted numbers are not the numbers of the input";
    return NULL;
}

const struct kernel kernels[] = {
    {"exp_float", 1, sizeof(float), exp_float, check_exp_float},
    {"exp_double", 1, sizeof(double), exp_double, check_exp_double},
    {"bsearch", 1, sizeof(uint32_t), search, check_search},
    {"gray2bin", 1, sizeof(uint32_t), decode, check_decode},
    {"insertion_sort", 0, sizeof(uint32_t), insertion_sort, check_sort},
    {"qsort", 0, sizeof(uint32_t), quick_sort, check_sort},
};
const size_t kernel_count = sizeof kernels / sizeof *kernels;

static int compare(const void *first, const void *second)
{
    uint32_t a = *(const uint32_t *)first, b = *(const uint32_t *)second;
    return (a > b) - (a < b);
}

int job_create(const struct kernel *kernel, struct job *job, uint64_t seed)
{
    int searches = kernel->execute == search;
    job->results = searches || job->operations < job->size ? job->operations : job->size;
    job->input = malloc(job->size * sizeof *job->input);
    job->keys = searches ? malloc(job->operations * sizeof *job->keys) : NULL;
    job->result = malloc(job->results * kernel->result_bytes);
    if (!job->input || !job->result || (searches && !job->keys))
        return 0;
    draw_data(job->input, job->size, seed);
    if (kernel->execute == exp_float || kernel->execute == exp_double)
        for (size_t k = 0; k < job->size; k++)
            job->input[k] >>= 27; /* 0 to 31 */
    if (searches) {
        qsort(job->input, job->size, sizeof *job->input, compare);
        draw_keys(job->keys, job->operations, seed);
    }
    return 1;
}

void job_reset(const struct kernel *kernel, struct job *job)
{
    if (kernel->check == check_sort)
        memcpy(job->result, job->input, job->size * sizeof *job->input);
    else
        memset(job->result, kernel->execute == search ? 0xff : 0, job->results * kernel->result_bytes);
}

uint64_t job_checksum(const struct kernel *kernel, const struct job *job)
{
    uint64_t state = 0xcbf29ce484222325u;
    for (size_t k = 0; k < job->results; k++) {
        uint64_t word = 0;
        if (kernel->result_bytes == sizeof word) {
            memcpy(&word, (const char *)job->result + k * sizeof word, sizeof word);
        } else {
            uint32_t half;
            memcpy(&half, (const char *)job->result + k * sizeof half, sizeof half);
            word = half;
        }
        state = (state ^ word) * 0x100000001b3u;
    }
    return state;
}
