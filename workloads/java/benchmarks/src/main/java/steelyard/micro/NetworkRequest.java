package steelyard.micro;

import java.io.DataInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/** A request over TCP on the loopback interface, answered with the same bytes by another thread. */
@State(Scope.Thread)
@BenchmarkMode(Mode.Throughput)
public class NetworkRequest {
  /** Size of a request and of its answer [bytes]; 8 at least. */
  @Param("64")
  public int messageBytes;

  private ServerSocket server;
  private Thread answering;
  private Socket socket;
  private OutputStream output;
  private DataInputStream input;
  private byte[] request;
  private byte[] answer;
  private long turn;

  /** Starts the answering thread on a free port and connects to it. */
  @Setup
  public void connect() throws IOException {
    InetAddress loopback = InetAddress.getLoopbackAddress();
    server = new ServerSocket(0, 1, loopback);
    answering = new Thread(this::answerAll, "answering");
    answering.setDaemon(true);
    answering.start();
    socket = new Socket(loopback, server.getLocalPort());
    socket.setTcpNoDelay(true);
    output = socket.getOutputStream();
    input = new DataInputStream(socket.getInputStream());
    request = new byte[messageBytes];
    answer = new byte[messageBytes];
  }

  /** Closes the connection, on which the answering thread ends. */
  @TearDown
  public void disconnect() throws IOException, InterruptedException {
    socket.close();
    answering.join();
    server.close();
  }

  /** One request and its answer; gives the number that went there and back. */
  @Benchmark
  public long requestAndReply() throws IOException {
    turn++;
    ByteBuffer.wrap(request).putLong(0, turn);
    output.write(request);
    input.readFully(answer);
    long found = ByteBuffer.wrap(answer).getLong(0);
    if (found != turn) {
      throw new IOException("sent " + turn + ", received " + found);
    }
    return found;
  }

  private void answerAll() {
    try (Socket connection = server.accept()) {
      connection.setTcpNoDelay(true);
      DataInputStream requests = new DataInputStream(connection.getInputStream());
      OutputStream answers = connection.getOutputStream();
      byte[] message = new byte[messageBytes];
      while (true) {
        requests.readFully(message);
        answers.write(message);
      }
    } catch (IOException closed) {
      // The connection was closed: the trial is over.
    }
  }
}
