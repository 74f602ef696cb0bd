package steelyard.monitored;

import java.io.IOException;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * Begin and duration of every call, in a mapped file: two little-endian numbers of 8 bytes each [ns].
 *
 * <p>The file has its full size, and every page of it was written to, before the first call: recording one is two
 * stores into memory. It belongs into a folder in memory, whose pages the system never writes back.
 */
public final class CallRecord {
  /** Size of the record of a call [bytes]. */
  static final int CALL_BYTES = 16;

  private static final int PAGE_BYTES = 4096;

  private final LongBuffer numbers;

  private CallRecord(LongBuffer numbers) {
    this.numbers = numbers;
  }

  /**
   * Makes the file.
   *
   * @param path where; overwritten
   * @param calls number of calls that it has room for
   */
  public static CallRecord make(Path path, int calls) throws IOException {
    long bytes = (long) calls * CALL_BYTES;
    try (FileChannel channel =
        FileChannel.open(
            path,
            StandardOpenOption.CREATE,
            StandardOpenOption.TRUNCATE_EXISTING,
            StandardOpenOption.READ,
            StandardOpenOption.WRITE)) {
      MappedByteBuffer mapped = channel.map(FileChannel.MapMode.READ_WRITE, 0, bytes);
      for (int place = 0; place < bytes; place += PAGE_BYTES) {
        mapped.put(place, (byte) 0);
      }
      return new CallRecord(mapped.order(ByteOrder.LITTLE_ENDIAN).asLongBuffer());
    }
  }

  /** Keeps a call. */
  public void put(int number, long startNs, long durationNs) {
    numbers.put(2 * number, startNs);
    numbers.put(2 * number + 1, durationNs);
  }
}
