package sample;

import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.util.ArrayDeque;
import java.util.Collection;
import java.util.IdentityHashMap;
import java.util.Map;

/** An object with all that it refers to, as text: equal for graphs that are equal, with what is shared in them. */
final class Picture {
  private final StringBuilder text = new StringBuilder();
  private final Map<Object, Integer> seen = new IdentityHashMap<>();
  private final ArrayDeque<Object> open = new ArrayDeque<>();

  private Picture() {}

  static String of(Object root) {
    Picture picture = new Picture();
    picture.reference(root);
    picture.rest();
    return picture.text.toString();
  }

  static String ofStatics(Class<?> type) {
    Picture picture = new Picture();
    picture.fields(null, type, true);
    picture.rest();
    return picture.text.toString();
  }

  static String difference(String expected, String got) {
    int at = 0;
    while (at < Math.min(expected.length(), got.length()) && expected.charAt(at) == got.charAt(at)) {
      at++;
    }
    int from = Math.max(0, at - 120);
    return "expected ..." + expected.substring(from, Math.min(expected.length(), at + 200)) + "\ngot      ..."
        + got.substring(from, Math.min(got.length(), at + 200)) + "\n";
  }

  private void rest() {
    while (!open.isEmpty()) {
      Object object = open.poll();
      text.append("\n").append(seen.get(object)).append("=");
      describe(object);
    }
  }

  private void reference(Object object) {
    if (object == null || object instanceof Number || object instanceof Boolean || object instanceof Character) {
      text.append(object instanceof Number number && !isBox(number) ? object.getClass().getSimpleName() + number : object).append(",");
      return;
    }
    if (object instanceof String string) {
      text.append('"').append(string).append("\",");
      return;
    }
    Integer number = seen.get(object);
    if (number == null) {
      number = seen.size();
      seen.put(object, number);
      open.add(object);
    }
    text.append("@").append(number).append(",");
  }

  private static boolean isBox(Number number) {
    return number.getClass().getPackageName().equals("java.lang");
  }

  private void describe(Object object) {
    Class<?> type = object.getClass();
    if (type.isHidden() || Proxy.isProxyClass(type) || object instanceof ClassLoader || object instanceof Class || object instanceof Thread) {
      text.append(object instanceof Class<?> one ? one.getName() : "a lambda, proxy or loader");
      return;
    }
    text.append(type.getName()).append("{");
    if (type.isArray()) {
      for (int i = 0; i < Array.getLength(object); i++) {
        reference(Array.get(object, i));
      }
    } else if (object instanceof Map<?, ?> map) {
      boolean isOrdered = !(map.keySet().stream().anyMatch(key -> key instanceof Enum)) || object instanceof java.util.EnumMap;
      text.append(map.size());
      if (isOrdered) {
        map.forEach((key, value) -> {
          reference(key);
          reference(value);
        });
      }
    } else if (object instanceof Collection<?> all) {
      text.append(all.size());
      if (!(object instanceof java.util.HashSet)) { // their order is that of hashes
        all.forEach(this::reference);
      }
    } else if (type.getName().startsWith("java.") && !(object instanceof Throwable) && !(object instanceof java.util.Optional)) {
      boolean isTold = !text(type);
      text.append(isTold ? object.toString().replaceAll("@[0-9a-f]+", "@") : "");
    } else if (object instanceof Throwable thrown) {
      reference(thrown.getMessage());
      reference(thrown.getCause());
      reference(thrown.getSuppressed());
      text.append(thrown.getStackTrace().length > 0 ? thrown.getStackTrace()[0] : "");
      fields(object, type, false);
    } else {
      fields(object, type, false);
    }
    text.append("}");
  }

  private static boolean text(Class<?> type) {
    return type == Object.class || type.getName().startsWith("java.util.Random") || type.getName().contains("Lock") || type.getName().contains("ThreadLocal")
        || type.getName().contains("Scanner") || type.getName().contains("Updater");
  }

  private void fields(Object object, Class<?> type, boolean statics) {
    for (Class<?> owner = type; owner != null && !owner.getName().startsWith("java."); owner = owner.getSuperclass()) {
      for (Field field : owner.getDeclaredFields()) {
        if (Modifier.isStatic(field.getModifiers()) == statics && !field.isSynthetic()) {
          text.append(field.getName()).append(":");
          try {
            field.setAccessible(true);
            reference(field.get(object));
          } catch (IllegalAccessException e) {
            throw new IllegalStateException(e);
          }
        }
      }
    }
  }
}
