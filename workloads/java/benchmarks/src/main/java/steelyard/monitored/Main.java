package steelyard.monitored;

import java.io.IOException;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;

/** Calls the monitored method many times in a thread of its own, and keeps how long each call took. */
public final class Main {
  /** Name of the thread that makes the calls; the kernel knows it by the same, which has 15 letters at most. */
  static final String THREAD = "steelyard-calls";

  private final Options options;
  private final Monitored monitored;
  private long loopStartNs;
  private long measuredStartNs;
  private long endNs;
  private long last;

  private Main(Options options) {
    this.options = options;
    boolean isHandling = options.allocateBytes > 0;
    this.monitored =
        new Monitored(isHandling ? new HandledObjects(options.allocateBytes, options.isPooled) : null);
  }

  /** Executes the loop of calls that the words ask for. */
  public static void main(String[] words) throws IOException, InterruptedException {
    if (List.of(words).contains("--help")) {
      System.out.print(Options.USAGE);
      return;
    }
    Options options;
    try {
      options = Options.of(List.of(words));
    } catch (IllegalArgumentException wrong) {
      System.err.println("error: " + wrong.getMessage() + "\n\nhint: --help lists what is allowed");
      System.exit(2);
      return;
    }
    Main program = new Main(options);
    CallRecord record = options.record == null ? null : CallRecord.make(options.record, options.calls);
    Thread thread = new Thread(() -> program.execute(record), THREAD);
    thread.start();
    thread.join();
    Files.writeString(options.about, program.about() + "\n");
  }

  private void execute(CallRecord record) {
    loopStartNs = System.nanoTime();
    call(record, 0, options.warmUpCalls);
    measuredStartNs = System.nanoTime();
    call(record, options.warmUpCalls, options.calls);
    endNs = System.nanoTime();
  }

  private void call(CallRecord record, int first, int end) {
    if (record == null) {
      callOnly(first, end);
    } else if (options.isOneStamp) {
      callWithOneStamp(record, first, end);
    } else {
      callWithTwoStamps(record, first, end);
    }
  }

  private void callOnly(int first, int end) {
    for (int number = first; number < end; number++) {
      last = monitored.call(options.methodNs, options.depth);
    }
  }

  private void callWithTwoStamps(CallRecord record, int first, int end) {
    for (int number = first; number < end; number++) {
      long startNs = System.nanoTime();
      last = monitored.call(options.methodNs, options.depth);
      long stopNs = System.nanoTime();
      record.put(number, startNs, stopNs - startNs);
    }
  }

  private void callWithOneStamp(CallRecord record, int first, int end) {
    long startNs = System.nanoTime();
    for (int number = first; number < end; number++) {
      last = monitored.call(options.methodNs, options.depth);
      long stopNs = System.nanoTime();
      record.put(number, startNs, stopNs - startNs);
      startNs = stopNs;
    }
  }

  /** Says what was executed and in which virtual machine; `last` depends on every call. */
  private String about() {
    String collectors =
        ManagementFactory.getGarbageCollectorMXBeans().stream()
            .map(Main::collector)
            .collect(Collectors.joining(","));
    return String.format(
        Locale.ROOT,
        "{\"language\":\"java\",\"runtime\":%s,\"machine\":%s,\"thread\":%s,\"calls\":%d,\"warm_up_calls\":%d,"
            + "\"depth\":%d,\"method_ns\":%d,\"allocate_bytes\":%d,\"is_pooled\":%b,\"stamps_per_call\":%d,"
            + "\"loop_start_ns\":%d,\"loop_ns\":%d,\"measured_start_ns\":%d,\"measured_ns\":%d,"
            + "\"last\":%d,\"collectors\":[%s]}",
        quoted(System.getProperty("java.runtime.version")),
        quoted(System.getProperty("java.vm.name")),
        quoted(THREAD),
        options.calls,
        options.warmUpCalls,
        options.depth,
        options.methodNs,
        options.allocateBytes,
        options.isPooled,
        options.record == null ? 0 : options.isOneStamp ? 1 : 2,
        loopStartNs,
        endNs - loopStartNs,
        measuredStartNs,
        endNs - measuredStartNs,
        last,
        collectors);
  }

  private static String collector(GarbageCollectorMXBean bean) {
    return String.format(
        Locale.ROOT,
        "{\"name\":%s,\"collections\":%d,\"collection_ms\":%d}",
        quoted(bean.getName()), bean.getCollectionCount(), bean.getCollectionTime());
  }

  private static String quoted(String text) {
    return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"") + '"';
  }
}
