package dev.forerun.runtime;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

/** The handler's process. */
public final class Main {
  private static final int DESCRIPTOR = 3;
  private static final int MAX_RESULT_BYTES = 64 << 20;
  private static final int MAX_SENTENCE = 8000;

  private final Connection connection;
  private final Environment environment;

  private Main() throws ReflectiveOperationException {
    connection = new Connection(DESCRIPTOR);
    environment = new Environment();
  }

  /**
   * Serves until the server closes the socket. The process ends then, whatever threads the function has left, and also if
   * something is thrown as an error of the function is told.
   *
   * @param args none
   */
  public static void main(String[] args) {
    int status = 1;
    try {
      System.setOut(unbuffered(FileDescriptor.out));
      System.setErr(unbuffered(FileDescriptor.err));
      String folder = System.getenv().getOrDefault("FORERUN_CODE", "/action");
      new Main().serve(Path.of(folder, "action.jar"));
      status = 0;
    } catch (Throwable e) {
      e.printStackTrace();
    } finally {
      Runtime.getRuntime().halt(status);
    }
  }

  /** A stream whose lines are in the pipe when println returns. */
  private static PrintStream unbuffered(FileDescriptor descriptor) {
    return new PrintStream(new FileOutputStream(descriptor), true, StandardCharsets.UTF_8);
  }

  private void serve(Path jar) throws IOException {
    Frame init = connection.read();
    Action action = init == null ? null : load(init, jar);
    while (action != null) {
      connection.write(Frame.of(Frame.READY));
      Frame run = connection.read();
      if (run == null || run.type() != Frame.RUN) {
        return;
      }
      environment.enter(run);
      Thread.interrupted(); // the flag would be the activation's before
      Frame result = execute(action, run);
      System.out.flush();
      System.err.flush();
      connection.write(result);
    }
  }

  /** Loads the code and says how that went; null if it failed. */
  private Action load(Frame init, Path jar) throws IOException {
    environment.add(init);
    JsonObject done = new JsonObject();
    Action action = null;
    try {
      action = Action.load(jar, init.text("main"));
    } catch (Exception | LinkageError e) {
      e.printStackTrace();
      done.addProperty("error", sentence("An error has occurred (see logs for details): " + e));
    }
    done.addProperty("ok", action != null);
    connection.write(Frame.of(Frame.INIT_DONE, done));
    return action;
  }

  private static Frame execute(Action action, Frame run) {
    try {
      String input = new String(run.payload(), StandardCharsets.UTF_8);
      JsonElement output = action.call(JsonParser.parseString(input));
      return result(output.toString().getBytes(StandardCharsets.UTF_8), limit(run));
    } catch (InvocationTargetException e) {
      Throwable thrown = e.getCause();
      thrown.printStackTrace();
      return failure("An error has occurred while invoking the action (see logs for details): " + thrown);
    } catch (Exception | StackOverflowError | LinkageError e) {
      e.printStackTrace();
      return failure("An error has occurred (see logs for details): " + e);
    }
  }

  private static int limit(Frame run) {
    return run.header().has("limit") ? run.header().get("limit").getAsInt() : MAX_RESULT_BYTES;
  }

  private static Frame result(byte[] payload, int limit) {
    if (payload.length > limit) {
      return failure(
          "The action produced a response that exceeded the allowed length: %d > %d bytes."
              .formatted(payload.length, limit));
    }
    JsonObject header = new JsonObject();
    header.addProperty("status", "ok");
    return new Frame(Frame.RESULT, header, payload);
  }

  private static Frame failure(String text) {
    JsonObject header = new JsonObject();
    header.addProperty("status", "error");
    header.addProperty("error", sentence(text));
    return Frame.of(Frame.RESULT, header);
  }

  private static String sentence(String text) {
    return text.substring(0, Math.min(text.length(), MAX_SENTENCE));
  }
}
