package steelyard.micro;

import com.sun.nio.file.ExtendedOpenOption;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/**
 * Writing a block of a file and reading it back.
 *
 * <p>{@code cached}: through the cache of the operating system, which no storage is waited for. {@code synced}:
 * a block is on the storage before it counts as written, and is read back from the cache. {@code direct}: the
 * same past the cache, so that the storage is read too; blocks and their places must be multiples of its own.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.Throughput)
public class FileAccess {
  /** Folder on the storage that is measured. */
  @Param("")
  public String folder;

  /** How blocks come to the storage: cached, synced or direct. */
  @Param("cached")
  public String access;

  /** Size of a block [bytes]. */
  @Param("1024")
  public int blockBytes;

  /** Number of blocks of the file; they are visited in turn. */
  @Param("4096")
  public int blocks;

  private Path path;
  private FileChannel channel;
  private ByteBuffer written;
  private ByteBuffer read;
  private long turn;

  /** Makes a file of its full size, so that no operation extends it. */
  @Setup
  public void makeFile() throws IOException {
    if (folder.isEmpty()) {
      throw new IllegalArgumentException("no folder; say -p folder=FOLDER");
    }
    path = Files.createTempFile(Path.of(folder), "steelyard-", ".bin");
    written = aligned();
    read = aligned();
    open(StandardOpenOption.READ, StandardOpenOption.WRITE);
    for (long block = 0; block < blocks; block++) {
      transfer(true, block * blockBytes);
    }
    switch (access) {
      case "cached" -> {}
      case "synced" -> reopen(StandardOpenOption.DSYNC);
      case "direct" -> reopen(StandardOpenOption.DSYNC, ExtendedOpenOption.DIRECT);
      default ->
          throw new IllegalArgumentException(
              "access is " + access + "; allowed: cached, synced, direct");
    }
  }

  /** Lets all blocks come to the storage before the first one is timed. */
  private void reopen(OpenOption... further) throws IOException {
    channel.force(true);
    channel.close();
    OpenOption[] options = Arrays.copyOf(further, further.length + 2);
    options[further.length] = StandardOpenOption.READ;
    options[further.length + 1] = StandardOpenOption.WRITE;
    open(options);
  }

  private void open(OpenOption... options) throws IOException {
    channel = FileChannel.open(path, options);
  }

  /** Gives a block that begins at a multiple of the storage's own blocks. */
  private ByteBuffer aligned() throws IOException {
    int unit = Math.toIntExact(Files.getFileStore(path).getBlockSize());
    int whole = (blockBytes + unit - 1) / unit * unit;
    return ByteBuffer.allocateDirect(whole + unit).alignedSlice(unit).limit(blockBytes).slice();
  }

  /** Removes the file. */
  @TearDown
  public void removeFile() throws IOException {
    channel.close();
    Files.delete(path);
  }

  /** One block written and read back; gives the number that was written into it. */
  @Benchmark
  public long writeAndRead() throws IOException {
    turn++;
    long position = turn % blocks * blockBytes;
    written.putLong(0, turn);
    transfer(true, position);
    transfer(false, position);
    long found = read.getLong(0);
    if (found != turn) {
      throw new IOException("wrote " + turn + ", read " + found);
    }
    return found;
  }

  private void transfer(boolean isWrite, long position) throws IOException {
    ByteBuffer block = isWrite ? written : read;
    block.clear();
    while (block.hasRemaining()) {
      long place = position + block.position();
      int moved = isWrite ? channel.write(block, place) : channel.read(block, place);
      if (moved < 0) {
        throw new IOException("the file ends at " + place);
      }
    }
  }
}
