package steelyard.monitored;

import java.nio.file.Path;
import java.util.Iterator;
import java.util.List;

/** What the command line says. */
final class Options {
  static final String USAGE =
      """
      usage: steelyard.monitored.Main --about FILE [--record FILE] [--calls N] [--warm-up-calls N]
                                      [--depth N] [--method-ns N] [--clock two|one]
                                      [--allocate BYTES [--object-pools]]
        --about         where the program says one line of JSON about itself
        --record        where the begin and the duration of every call go; absent: only the whole loop is timed
        --calls         calls in all (default 2000000)
        --warm-up-calls how many of them come before those that are measured; they are recorded as well (default 0)
        --depth         how often the method calls itself in a call, itself included (default 10)
        --method-ns     time for which the innermost call waits busily [ns] (default 500)
        --clock         `two`: a stamp before and one after each call (default);
                        `one`: a call begins where the one before ended, one stamp for both
        --allocate      size of an object that each call handles [bytes] (default 0: none)
        --object-pools  use these objects again instead of making new ones
      """;

  /** The most whose record can be mapped at once. */
  static final int MAX_CALLS = Integer.MAX_VALUE / CallRecord.CALL_BYTES;

  Path about;
  Path record;
  int calls = 2_000_000;
  int warmUpCalls;
  int depth = 10;
  long methodNs = 500;
  boolean isOneStamp;
  int allocateBytes;
  boolean isPooled;

  /**
   * Reads the words of a command line.
   *
   * @throws IllegalArgumentException if one is unknown or out of its range; the message names it
   */
  static Options of(List<String> words) {
    Options options = new Options();
    Iterator<String> rest = words.iterator();
    while (rest.hasNext()) {
      options.take(rest.next(), rest);
    }
    if (options.about == null) {
      throw new IllegalArgumentException("`--about` is missing");
    }
    if (options.warmUpCalls >= options.calls) {
      throw new IllegalArgumentException(
          "`--warm-up-calls " + options.warmUpCalls + "` leaves none of " + options.calls + " calls to measure");
    }
    if (options.isOneStamp && options.record == null) {
      throw new IllegalArgumentException("`--clock one` needs `--record`: without, no call is timed");
    }
    return options;
  }

  private void take(String word, Iterator<String> rest) {
    switch (word) {
      case "--about" -> about = Path.of(value(word, rest));
      case "--record" -> record = Path.of(value(word, rest));
      case "--calls" -> calls = (int) number(word, rest, 1, MAX_CALLS);
      case "--warm-up-calls" -> warmUpCalls = (int) number(word, rest, 0, MAX_CALLS);
      case "--depth" -> depth = (int) number(word, rest, 1, 1000);
      case "--method-ns" -> methodNs = number(word, rest, 0, 1_000_000_000L);
      case "--clock" -> isOneStamp = isOne(value(word, rest));
      case "--allocate" -> allocateBytes = (int) number(word, rest, 0, 1 << 20);
      case "--object-pools" -> isPooled = true;
      default -> throw new IllegalArgumentException("`" + word + "` is no option");
    }
  }

  private static boolean isOne(String value) {
    return switch (value) {
      case "one" -> true;
      case "two" -> false;
      default -> throw new IllegalArgumentException("`--clock " + value + "`; allowed: one, two");
    };
  }

  private static String value(String word, Iterator<String> rest) {
    if (!rest.hasNext()) {
      throw new IllegalArgumentException("`" + word + "` needs a value");
    }
    return rest.next();
  }

  private static long number(String word, Iterator<String> rest, long least, long most) {
    String text = value(word, rest);
    try {
      long number = Long.parseLong(text);
      if (number >= least && number <= most) {
        return number;
      }
    } catch (NumberFormatException notANumber) {
      // Said below, like a number out of range.
    }
    throw new IllegalArgumentException("`" + word + " " + text + "`; allowed: " + least + " to " + most);
  }
}
