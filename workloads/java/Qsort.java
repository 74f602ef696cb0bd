import java.io.FileOutputStream;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * Quicksort in Java: the same input, checksum and report as `steelyard-work kernel qsort`.
 *
 * <p>Usage: java Qsort --size N --seed S [--repeat R] [--warmup W] [--metrics-stdout]
 *
 * <p>`cpu` is the CPU time of the sorting thread: the process clock of the virtual machine counts in
 * steps of 10 ms, and would add its compiler and collector threads. Exit codes: 0 done, 1 cannot
 * write, 2 wrong usage, 3 wrong result.
 */
public final class Qsort {
    private static final long MULTIPLIER = 6364136223846793005L;
    private static final long STREAM = 0x5374_6565_6c79_6172L;
    private static final int LARGEST_SIZE = 1 << 30;
    private static final int MOST_SECTIONS = 1_000_000;

    private long size;
    private long seed;
    private boolean seedGiven;
    private long repeat = 1;
    private long warmUp;
    private int descriptor = -1;

    private Qsort() {}

    /** Words of PCG-XSH-RR 64/32, stream and seed as in the native program. */
    private static int[] drawWords(long seed, int count) {
        long increment = (STREAM << 1) | 1;
        long state = (seed + increment) * MULTIPLIER + increment;
        int[] words = new int[count];
        for (int k = 0; k < count; k++) {
            words[k] = Integer.rotateRight((int) (((state >>> 18) ^ state) >>> 27), (int) (state >>> 59));
            state = state * MULTIPLIER + increment;
        }
        return words;
    }

    /** Hoare's partition around the middle element. The words are unsigned: see {@link #flip}. */
    private static void quickSort(int[] numbers, int first, int end) {
        if (end - first < 2) {
            return;
        }
        int pivot = numbers[first + (end - first - 1) / 2];
        int left = first;
        int right = end;
        while (left < right) {
            while (numbers[left] < pivot) {
                left++;
            }
            while (numbers[right - 1] > pivot) {
                right--;
            }
            if (left < right) {
                int number = numbers[left];
                numbers[left] = numbers[right - 1];
                numbers[right - 1] = number;
                left++;
                right--;
            }
        }
        quickSort(numbers, first, right);
        quickSort(numbers, left, end);
    }

    /** Maps unsigned order to the order of `int` and back. */
    private static int flip(int word) {
        return word ^ Integer.MIN_VALUE;
    }

    /** FNV-1a over whole words. */
    private static long checksum(int[] numbers) {
        long state = 0xcbf29ce484222325L;
        for (int number : numbers) {
            state = (state ^ (flip(number) & 0xffff_ffffL)) * 0x100000001b3L;
        }
        return state;
    }

    private static long number(String option, String text, long smallest, long largest) {
        try {
            long number = Long.parseUnsignedLong(text);
            boolean plain = !text.startsWith("+");
            if (plain && Long.compareUnsigned(number, smallest) >= 0 && Long.compareUnsigned(number, largest) <= 0) {
                return number;
            }
        } catch (NumberFormatException error) {
            // Same answer as for a number out of range.
        }
        throw new IllegalArgumentException("`" + option + "` is `" + text + "`; allowed: a whole number from "
                + Long.toUnsignedString(smallest) + " to " + Long.toUnsignedString(largest));
    }

    private static Qsort read(String[] words) {
        Qsort task = new Qsort();
        boolean onStandardOutput = false;
        for (int k = 0; k < words.length; k++) {
            if (words[k].equals("--metrics-stdout")) {
                onStandardOutput = true;
                continue;
            }
            if (k + 1 == words.length) {
                throw new IllegalArgumentException("`" + words[k] + "` is unknown or needs a value");
            }
            task.set(words[k], words[++k]);
        }
        if (task.size == 0 || !task.seedGiven) {
            throw new IllegalArgumentException("`" + (task.size == 0 ? "--size" : "--seed") + "` is missing");
        }
        String variable = System.getenv("STEELYARD_METRICS_FD");
        if (onStandardOutput) {
            task.descriptor = 1;
        } else if (variable != null && !variable.isEmpty()) {
            task.descriptor = (int) number("STEELYARD_METRICS_FD", variable, 0, Integer.MAX_VALUE);
        }
        return task;
    }

    private void set(String option, String value) {
        switch (option) {
            case "--size":
                size = number(option, value, 1, LARGEST_SIZE);
                break;
            case "--seed":
                seed = number(option, value, 0, -1L);
                seedGiven = true;
                break;
            case "--repeat":
                repeat = number(option, value, 1, MOST_SECTIONS);
                break;
            case "--warmup":
                warmUp = number(option, value, 0, MOST_SECTIONS);
                break;
            default:
                throw new IllegalArgumentException("`" + option + "` is unknown");
        }
    }

    private int execute() throws IOException {
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        String prefix = descriptor == 1 ? "#steelyard " : "";
        int[] input = drawWords(seed, (int) size);
        for (int k = 0; k < input.length; k++) {
            input[k] = flip(input[k]);
        }
        int[] expected = input.clone();
        Arrays.sort(expected);
        StringBuilder report = new StringBuilder();
        for (long iteration = 1; iteration <= warmUp + repeat; iteration++) {
            int[] numbers = input.clone();
            long wall = System.nanoTime();
            long cpu = threads.getCurrentThreadCpuTime();
            quickSort(numbers, 0, numbers.length);
            cpu = threads.getCurrentThreadCpuTime() - cpu;
            wall = System.nanoTime() - wall;
            String end = " ns " + iteration + (iteration <= warmUp ? " warmup\n" : " measure\n");
            report.append(prefix).append("cpu ").append(cpu).append(end);
            report.append(prefix).append("wall ").append(wall).append(end);
            if (!Arrays.equals(numbers, expected)) {
                System.err.println("Qsort: the numbers are not sorted");
                return 3;
            }
        }
        System.out.println(String.format("%016x", checksum(expected)));
        write(report.toString());
        return 0;
    }

    private void write(String report) throws IOException {
        if (descriptor == 1) {
            System.out.print(report);
            System.out.flush();
        } else if (descriptor >= 0) {
            // Appending: opening a file this way must not cut off what is in it.
            try (FileOutputStream stream = new FileOutputStream("/proc/self/fd/" + descriptor, true)) {
                stream.write(report.getBytes(StandardCharsets.US_ASCII));
            }
        }
    }

    public static void main(String[] words) {
        Qsort task;
        try {
            task = read(words);
        } catch (IllegalArgumentException error) {
            System.err.println("Qsort: " + error.getMessage());
            System.err.println("\nhint: usage: java Qsort --size N --seed S [--repeat R] [--warmup W] [--metrics-stdout]");
            System.exit(2);
            return;
        }
        int code;
        try {
            code = task.execute();
        } catch (IOException error) {
            System.err.println("Qsort: cannot write to descriptor " + task.descriptor + ": " + error.getMessage());
            code = 1;
        }
        System.exit(code);
    }
}
