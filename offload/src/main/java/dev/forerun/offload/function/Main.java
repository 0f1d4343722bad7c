package dev.forerun.offload.function;

import com.google.gson.JsonObject;
import dev.forerun.offload.wire.Link;
import dev.forerun.offload.wire.Upgrade;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.URI;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;

/** The action: each activation is one offloaded call. */
public final class Main {
  private static final int PATIENCE_MILLIS = 10_000;
  private static final long STACK = 16 << 20; // bytes: frames are larger here than where the second compiler works
  private static final Instance INSTANCE = new Instance();

  static {
    Output.install();
  }

  private Main() {}

  /**
   * Joins the stream of the call for which the activation was begun, and serves it.
   *
   * @param input {"offload": the call's name at the gateway}
   * @return what came of it: root, ending, reason
   */
  public static JsonObject main(JsonObject input) throws IOException {
    URI server = URI.create(System.getenv("__OW_API_HOST"));
    String path = "/offload/join?call=" + input.get("offload").getAsString();
    try (Link link = Upgrade.open(server, System.getenv("__OW_API_KEY"), path, PATIENCE_MILLIS, 0)) {
      Instance.Outcome outcome = serve(link);
      JsonObject result = new JsonObject();
      result.addProperty("root", outcome.root());
      result.addProperty("ending", outcome.ending());
      result.addProperty("reason", outcome.reason());
      return result;
    }
  }

  private static Instance.Outcome serve(Link link) throws IOException {
    FutureTask<Instance.Outcome> call = new FutureTask<>(() -> INSTANCE.serve(link));
    new Thread(null, call, Thread.currentThread().getName(), STACK).start();
    try {
      return call.get();
    } catch (ExecutionException e) {
      throw new IOException(e.getCause());
    } catch (InterruptedException e) {
      throw new InterruptedIOException();
    }
  }
}
