package steelyard.micro;

import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;

/**
 * One call of a small method.
 *
 * <p>Which compiler translates it, and whether the call survives inlining, is decided by the options of the
 * forked virtual machine: {@code -Xint}, {@code -XX:TieredStopAtLevel=1}, {@code -XX:-TieredCompilation},
 * {@code -XX:CompileCommand=dontinline,steelyard.micro.MethodInvocation::next}.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.Throughput)
public class MethodInvocation {
  // Not final: it is read anew for each call, and so nothing can be folded. It is not written either: a chain
  // of calls through memory measures how a processor forwards what was stored, which differs by many times
  // with the addresses that a compiler happens to use.
  private int value = 1;

  /**
   * Gives the value without a call: what JMH's own loop takes, the floor of what {@link #invoke} can take.
   */
  @Benchmark
  public int nothing() {
    return value;
  }

  /** Calls {@link #next}; JMH consumes the result, and so nothing can be dropped. */
  @Benchmark
  public int invoke() {
    return next(value);
  }

  /** The generator of Numerical Recipes (Press et al., 2nd edition, section 7.1, "quick and dirty"). */
  private int next(int previous) {
    return previous * 1664525 + 1013904223;
  }
}
