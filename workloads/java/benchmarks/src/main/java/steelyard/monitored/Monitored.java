package steelyard.monitored;

/**
 * The application that is monitored, after the design of MooBench (Waller, Ehmke and Hasselbring, "Including
 * performance benchmarks into continuous integration to enable DevOps", SIGSOFT SEN 40(2), 2015): one method that
 * calls itself to a depth and, innermost, waits busily for the method time. A probe covers every call of it.
 */
public class Monitored {
  private final HandledObjects objects;

  /**
   * @param objects what the innermost call takes an object from; null: it handles none
   */
  public Monitored(HandledObjects objects) {
    this.objects = objects;
  }

  /**
   * Calls itself until the depth is 1, and then waits.
   *
   * @param methodNs time for which the innermost call waits busily [ns]
   * @param depth number of calls in all, 1 or more
   * @return the time at which the innermost call ended, or what its object held
   */
  public long call(long methodNs, int depth) {
    if (depth > 1) {
      return this.call(methodNs, depth - 1);
    }
    long end = System.nanoTime() + methodNs;
    long found = objects == null ? 0 : objects.handle();
    long now;
    do {
      now = System.nanoTime();
    } while (now < end);
    return now + found;
  }
}
