import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A random function, as function.py is one, of few steps: it does what "script" says. */
public class Function {
  private static final Pattern NAME = Pattern.compile("\\{(\\w+)\\}");
  private static Socket state;
  private static InputStream replies;

  public static JsonObject main(JsonObject args) throws Exception {
    JsonObject known = args.deepCopy();
    JsonArray script = known.remove("script").getAsJsonArray();
    if (!known.has("at") || !known.get("at").isJsonPrimitive()) { // it has no records of its own
      return new JsonObject();
    }
    JsonObject out = new JsonObject();
    for (String name : new String[] {"at", "k"}) {
      out.add(name, known.has(name) ? known.get(name) : new JsonPrimitive(0));
    }
    run(script, known, out);
    return out;
  }

  private static void run(JsonArray script, JsonObject known, JsonObject out) throws Exception {
    for (JsonElement element : script) {
      JsonArray step = element.getAsJsonArray();
      String argument = step.get(1).getAsString();
      switch (step.get(0).getAsString()) {
        case "redis":
          known.add(argument, command(step, known));
          out.add(argument, known.get(argument));
          break;
        case "if":
          int rest = Math.floorMod(said(known, argument).hashCode(), step.get(2).getAsInt());
          run(step.get(rest == 0 ? 3 : 4).getAsJsonArray(), known, out);
          break;
        case "sleep":
          Thread.sleep(step.get(1).getAsInt());
          break;
        case "log":
          System.out.println(fill(argument, known));
          break;
        default:
          throw new IllegalArgumentException(step.toString());
      }
    }
  }

  private static String said(JsonObject known, String name) {
    JsonElement value = known.get(name);
    return value == null ? "" : value.isJsonPrimitive() ? value.getAsString() : value.toString();
  }

  private static String fill(String text, JsonObject known) {
    return NAME.matcher(text).replaceAll(m -> Matcher.quoteReplacement(said(known, m.group(1))));
  }

  /** Sends what follows the name of a step's result, on a connection that stays. */
  private static JsonElement command(JsonArray step, JsonObject known) throws IOException {
    if (state == null) {
      state = new Socket("127.0.0.1", 6379);
      replies = new BufferedInputStream(state.getInputStream());
    }
    ByteArrayOutputStream request = new ByteArrayOutputStream();
    request.writeBytes(("*" + (step.size() - 2) + "\r\n").getBytes());
    for (int i = 2; i < step.size(); i++) {
      byte[] word = fill(step.get(i).getAsString(), known).getBytes(StandardCharsets.UTF_8);
      request.writeBytes(("$" + word.length + "\r\n").getBytes());
      request.writeBytes(word);
      request.writeBytes("\r\n".getBytes());
    }
    state.getOutputStream().write(request.toByteArray());
    return reply();
  }

  private static JsonElement reply() throws IOException {
    String line = line();
    String rest = line.substring(1);
    switch (line.charAt(0)) {
      case ':':
        return new JsonPrimitive(Long.parseLong(rest));
      case '$':
        return rest.equals("-1") ? JsonNull.INSTANCE : bulk(Integer.parseInt(rest));
      case '*':
        JsonArray list = new JsonArray();
        for (int i = Integer.parseInt(rest); i > 0; i--) {
          list.add(reply());
        }
        return list;
      case '-':
        return new JsonPrimitive("E " + rest);
      default:
        return new JsonPrimitive(rest);
    }
  }

  private static JsonElement bulk(int length) throws IOException {
    byte[] text = replies.readNBytes(length);
    replies.readNBytes(2);
    return new JsonPrimitive(new String(text, StandardCharsets.UTF_8));
  }

  private static String line() throws IOException {
    ByteArrayOutputStream line = new ByteArrayOutputStream();
    for (int b = replies.read(); b != '\r'; b = replies.read()) {
      if (b < 0) {
        throw new IOException("the connection was closed");
      }
      line.write(b);
    }
    replies.read();
    return line.toString(StandardCharsets.UTF_8);
  }
}
