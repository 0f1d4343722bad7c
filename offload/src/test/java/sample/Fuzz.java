package sample;

import dev.forerun.offload.agent.Entry;
import dev.forerun.offload.agent.Functions;
import dev.forerun.offload.agent.Offloader;
import dev.forerun.offload.function.Instance;
import dev.forerun.offload.graph.Rules;
import dev.forerun.offload.wire.Link;
import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Map;
import java.util.Random;
import java.util.Set;

/** Streams with a byte changed, in either direction: each call ends, the process lives, and calls are right again afterwards. */
public final class Fuzz {
  private static final int RUNS = 100;
  private static final int SILENCE_MILLIS = 200;

  private Fuzz() {}

  /** Changes one byte. */
  static final class Changed extends FilterOutputStream {
    private long left;
    private final int mask;

    Changed(OutputStream to, long at, int mask) {
      super(to);
      this.left = at;
      this.mask = mask;
    }

    @Override
    public void write(byte[] bytes, int from, int count) throws IOException {
      byte[] copy = java.util.Arrays.copyOfRange(bytes, from, from + count);
      if (left >= 0 && left < count) {
        copy[(int) left] ^= (byte) mask;
      }
      left -= count;
      out.write(copy);
    }
  }

  private static final class Faulty implements Functions {
    private final Random random = new Random(1);
    private Instance instance = new Instance();
    private boolean isFaulty = true;

    @Override
    public Link open() throws IOException {
      try (ServerSocket at = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
        Socket server = new Socket(at.getInetAddress(), at.getLocalPort());
        Socket function = at.accept();
        instance = new Instance();
        boolean ofServer = isFaulty && random.nextBoolean();
        OutputStream toServer = changed(function.getOutputStream(), isFaulty && !ofServer);
        OutputStream toFunction = changed(server.getOutputStream(), ofServer);
        Instance serving = instance;
        new Thread(null, () -> serve(serving, function, toServer), "function", 1 << 20).start();
        if (isFaulty) {
          server.setSoTimeout(SILENCE_MILLIS);
        }
        return new Link(server.getInputStream(), toFunction, server);
      }
    }

    private OutputStream changed(OutputStream out, boolean isChanged) {
      int at = random.nextInt(random.nextInt(4) == 0 ? 6000 : 400);
      return isChanged ? new Changed(out, at, 1 + random.nextInt(255)) : out;
    }

    private static void serve(Instance instance, Socket socket, OutputStream out) {
      try (Link link = new Link(socket.getInputStream(), out, socket)) {
        instance.serve(link);
      } catch (IOException | RuntimeException | Error e) {
        // the server has to notice
      }
    }
  }

  /** Prints "ok fuzz" at the end. */
  public static void main(String[] args) throws Exception {
    String name = "sample.app.Small";
    Set<String> roots = Set.of(name + "#count");
    Faulty functions = new Faulty();
    int ended = 0;
    for (int i = 0; i < RUNS; i++) {
      Object small = new Pair.Loader(roots).loadClass(name).getConstructor().newInstance();
      Entry.use(new Offloader(functions, Rules.ofServer(one -> one.startsWith("sample.app.")), Set.of(), Map.of(), line -> {}));
      try {
        small.getClass().getMethod("count", int.class).invoke(small, 3);
      } catch (java.lang.reflect.InvocationTargetException e) {
        // lost, or what the changed bytes say was thrown
      }
      ended++;
    }
    functions.isFaulty = false;
    Object small = new Pair.Loader(roots).loadClass(name).getConstructor().newInstance();
    Offloader offloader = new Offloader(functions, Rules.ofServer(one -> one.startsWith("sample.app.")), Set.of(), Map.of(), System.out::println);
    Entry.use(offloader);
    Object result = small.getClass().getMethod("count", int.class).invoke(small, 3);
    boolean ok = ended == RUNS && offloader.offloaded() == 1 && result.equals("[1, 2, 3] of 6");
    System.out.println(ok ? "ok fuzz" : "FAILED fuzz: " + ended + " ended, then " + result + ", offloaded " + offloader.offloaded());
    System.exit(ok ? 0 : 1);
  }
}
