package sample.library;

import java.text.MessageFormat;
import java.util.ArrayList;
import java.util.List;
import java.util.ResourceBundle;

/** A log in memory. */
public final class Log implements System.Logger {
  /** Its lines. */
  public final List<String> lines = new ArrayList<>();

  @Override
  public String getName() {
    return "log";
  }

  @Override
  public boolean isLoggable(Level level) {
    return true;
  }

  @Override
  public void log(Level level, ResourceBundle bundle, String message, Throwable thrown) {
    lines.add(message);
  }

  @Override
  public void log(Level level, ResourceBundle bundle, String format, Object... parameters) {
    lines.add(parameters == null || parameters.length == 0 ? format : MessageFormat.format(format, parameters));
  }
}
