/* The packet pipeline in C with POSIX threads, for benches/packets.py: one worker per queue, Lamport
 * queues with C11 atomics on cache lines of their own, offering the core while waiting, as the source of
 * the scaling study does it. Usage: packets M n W s D; uniform work. Prints the packets finished. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
    uint32_t iterations;
    uint32_t seed;
} packet;

typedef struct {
    alignas(128) atomic_size_t pushed;
    alignas(128) atomic_size_t popped;
    alignas(128) packet *slots;
    size_t depth;
    uint64_t count;
    uint64_t sum;
} queue;

static uint32_t table[256];
static alignas(128) atomic_bool stop;
static alignas(128) long length_ms;

static void fill_table(void) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t rest = byte;
        for (int bit = 0; bit < 8; bit++) rest = rest & 1 ? rest >> 1 ^ 0xEDB88320u : rest >> 1;
        table[byte] = rest;
    }
}

static inline uint32_t update(uint32_t crc, uint8_t byte) {
    crc = ~crc;
    return ~(table[(crc ^ byte) & 0xFF] ^ crc >> 8);
}

static inline uint64_t fingerprint(packet work) {
    uint64_t state = work.seed;
    for (uint32_t round = 0; round < work.iterations; round++)
        state = (state * 25214903917u + 11) & ((UINT64_C(1) << 48) - 1);
    return state >> 12;
}

static void *work(void *argument) {
    queue *own = argument;
    size_t popped = 0;
    uint64_t count = 0, sum = 0;
    for (;;) {
        while (atomic_load_explicit(&own->pushed, memory_order_acquire) == popped) {
            if (atomic_load_explicit(&stop, memory_order_relaxed)) goto end;
            sched_yield();
        }
        packet next = own->slots[popped % own->depth];
        popped++;
        atomic_store_explicit(&own->popped, popped, memory_order_release);
        sum += fingerprint(next);
        if (atomic_load_explicit(&stop, memory_order_relaxed)) break;
        count++;
    }
end:
    own->count = count;
    own->sum = sum;
    return NULL;
}

static void *ring_at_end(void *unused) {
    (void)unused;
    struct timespec length = {length_ms / 1000, length_ms % 1000 * 1000000};
    nanosleep(&length, NULL);
    atomic_store_explicit(&stop, true, memory_order_relaxed);
    return NULL;
}

static void dispatch(queue *queues, int count, uint32_t bound, long trial) {
    uint32_t start = 0, sizes[255], seeds[255];
    for (const char *text = "This is going to be my randomization string"; *text; text++)
        start = update(start, (uint8_t)*text);
    for (int source = 0; source < count; source++) {
        sizes[source] = seeds[source] = start;
        for (long draw = 0; draw < trial; draw++) seeds[source] = update(seeds[source], (uint8_t)(source + 1));
    }
    size_t round = 0;
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        for (int source = 0; source < count; source++) {
            queue *to = &queues[source];
            sizes[source] = update(sizes[source], (uint8_t)(source + 1));
            seeds[source] = update(seeds[source], (uint8_t)(source + 1));
            packet next = {sizes[source] % bound, seeds[source] % 100000001u};
            while (round - atomic_load_explicit(&to->popped, memory_order_acquire) == to->depth) {
                if (atomic_load_explicit(&stop, memory_order_relaxed)) return;
                sched_yield();
            }
            to->slots[round % to->depth] = next;
            atomic_store_explicit(&to->pushed, round + 1, memory_order_release);
        }
        round++;
    }
}

int main(int argc, char **argv) {
    if (argc != 6) {
        fputs("usage: packets M n W s D\n", stderr);
        return 2;
    }
    length_ms = atol(argv[1]);
    int count = atoi(argv[2]);
    size_t depth = (size_t)atol(argv[5]);
    if (length_ms < 1 || count < 1 || count > 255 || depth < 1) return 2;
    fill_table();
    queue *queues = aligned_alloc(128, sizeof(queue) * (size_t)count);
    pthread_t workers[255], timer;
    for (int place = 0; place < count; place++) {
        memset(&queues[place], 0, sizeof(queue));
        queues[place].depth = depth;
        queues[place].slots = aligned_alloc(128, (depth * sizeof(packet) + 127) / 128 * 128);
        pthread_create(&workers[place], NULL, work, &queues[place]);
    }
    pthread_create(&timer, NULL, ring_at_end, NULL);
    dispatch(queues, count, 2 * (uint32_t)atol(argv[3]) + 1, atol(argv[4]));
    uint64_t total = 0;
    for (int place = 0; place < count; place++) {
        pthread_join(workers[place], NULL);
        total += queues[place].count;
    }
    printf("%llu\n", (unsigned long long)total);
    return 0;
}
