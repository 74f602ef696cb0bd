package steelyard.micro;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/** Writing a block of a file and reading it back, through the cache of the operating system. */
@State(Scope.Thread)
@BenchmarkMode(Mode.Throughput)
public class FileAccess {
  /** Folder on the storage that is measured. */
  @Param("")
  public String folder;

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
    channel = FileChannel.open(path, StandardOpenOption.READ, StandardOpenOption.WRITE);
    written = ByteBuffer.allocateDirect(blockBytes);
    read = ByteBuffer.allocateDirect(blockBytes);
    for (long block = 0; block < blocks; block++) {
      transfer(true, block * blockBytes);
    }
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
