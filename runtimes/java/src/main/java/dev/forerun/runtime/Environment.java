package dev.forerun.runtime;

import com.google.gson.JsonObject;
import java.lang.reflect.Field;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/** The process's environment as System.getenv shows it, which Java has no way to change. */
final class Environment {
  private final Map<String, String> variables;
  private final Set<String> ofActivation = new HashSet<>();

  @SuppressWarnings("unchecked")
  Environment() throws ReflectiveOperationException {
    Map<String, String> unmodifiable = System.getenv();
    Field modifiable = unmodifiable.getClass().getDeclaredField("m");
    modifiable.setAccessible(true);
    variables = (Map<String, String>) modifiable.get(unmodifiable);
  }

  /** Adds variables for good: those of a header's member "env". */
  void add(Frame frame) {
    if (frame.header().has("env")) {
      JsonObject env = frame.header().getAsJsonObject("env");
      env.entrySet().forEach(e -> variables.put(e.getKey(), e.getValue().getAsString()));
    }
  }

  /** Replaces the variables of the previous activation by those of this one. */
  void enter(Frame run) {
    ofActivation.forEach(variables::remove);
    ofActivation.clear();
    if (run.header().has("env")) {
      ofActivation.addAll(run.header().getAsJsonObject("env").keySet());
    }
    add(run);
  }
}
