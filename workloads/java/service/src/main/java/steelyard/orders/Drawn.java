// SPDX-License-Identifier: Apache-2.0
package steelyard.orders;

import org.springframework.stereotype.Component;

/**
 * Every value of the rows, a function of the seed and of a number alone: whoever asks the service can
 * compute the same values and tell a wrong answer from a right one.
 */
@Component
public class Drawn {
    /** Number of items in the catalogue. */
    public static final int ITEMS = 1000;

    private static final long PRICE = 1;
    private static final long CUSTOMER = 2;
    private static final long LINES = 3;
    private static final long ITEM = 4;
    private static final long QUANTITY = 5;
    private static final int MOST_LINES = 4;
    private static final int MOST_QUANTITY = 9;
    private static final int MOST_CENTS = 10_000;

    private final long seed;
    private final int customers;

    public Drawn(Given given) {
        seed = given.seed();
        customers = Math.max(1, given.rows() / 10);
    }

    /** Number of customers: one for ten orders. */
    public int customers() {
        return customers;
    }

    /** Price of an item [cents]. */
    public int priceCents(long item) {
        return 1 + below(PRICE, item, 0, MOST_CENTS);
    }

    /** Customer of an order, from 1. */
    public int customer(long order) {
        return 1 + below(CUSTOMER, order, 0, customers);
    }

    /** Number of lines of an order. */
    public int lines(long order) {
        return 1 + below(LINES, order, 0, MOST_LINES);
    }

    /** Item of a line, from 1. */
    public long item(long order, int line) {
        return 1 + below(ITEM, order, line, ITEMS);
    }

    /** Quantity of a line, from 1. */
    public int quantity(long order, int line) {
        return 1 + below(QUANTITY, order, line, MOST_QUANTITY);
    }

    private int below(long kind, long number, int line, int bound) {
        long value = mix(mix(mix(seed + kind) + number) + line);
        return (int) Long.remainderUnsigned(value, bound);
    }

    /** SOURCE: Steele, Lea and Flood (2014), the output function of SplitMix64 (doi:10.1145/2660193.2660195). */
    static long mix(long state) {
        long value = state + 0x9E3779B97F4A7C15L;
        value = (value ^ (value >>> 30)) * 0xBF58476D1CE4E5B9L;
        value = (value ^ (value >>> 27)) * 0x94D049BB133111EBL;
        return value ^ (value >>> 31);
    }
}
