import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.NetworkInterface;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** A function that does what a test asks it to. */
public class Probe {
  private static int calls;
  private static Socket redis;

  public static JsonObject main(JsonObject args) throws Exception {
    calls++;
    JsonObject result = new JsonObject();
    switch (args.has("do") ? args.get("do").getAsString() : "echo") {
      case "throw":
        throw new IllegalStateException("nooo");
      case "exit":
        System.exit(3);
        break;
      case "sleep":
        Thread.sleep(60_000);
        break;
      case "memory":
        for (List<byte[]> hog = new ArrayList<>(); ; ) {
          hog.add(new byte[8 << 20]);
        }
      case "log":
        System.out.println("to stdout");
        System.err.println("to stderr");
        break;
      case "leave":
        // Of the folders that the JVM itself keeps there.
        result.addProperty("files", new File("/tmp").list((folder, name) -> !name.startsWith("hsperfdata")).length);
        result.addProperty("children", sleepers());
        result.addProperty("calls", calls);
        Files.createDirectories(Path.of("/tmp/folder/file"));
        new ProcessBuilder("/bin/sleep", "1000").start();
        return result;
      case "interfaces":
        JsonArray names = new JsonArray();
        for (NetworkInterface one : Collections.list(NetworkInterface.getNetworkInterfaces())) {
          if (one.isLoopback() && one.isUp() && one.getMTU() > 0) {
            names.add(one.getName());
          }
        }
        result.add("names", names);
        return result;
      case "count":
        result.addProperty("n", count());
        return result;
      default:
    }
    result.addProperty("calls", calls);
    result.addProperty("id", System.getenv("__OW_ACTIVATION_ID"));
    result.addProperty("action", System.getenv("__OW_ACTION_NAME"));
    result.addProperty("n", (args.has("n") ? args.get("n").getAsInt() : 0) + 1);
    return result;
  }

  private static int sleepers() {
    int found = 0;
    for (File process : new File("/proc").listFiles()) {
      try {
        if (Files.readString(process.toPath().resolve("cmdline")).startsWith("/bin/sleep")) {
          found++;
        }
      } catch (IOException e) {
        // No process, or one that has ended.
      }
    }
    return found;
  }

  private static int count() throws IOException {
    if (redis == null) {
      redis = new Socket("127.0.0.1", 6379);
    }
    redis.getOutputStream().write("INCR counter\r\n".getBytes());
    return Integer.parseInt(new BufferedReader(new InputStreamReader(redis.getInputStream())).readLine().substring(1));
  }
}
