package dev.forerun.offload.graph;

import dev.forerun.offload.wire.In;
import dev.forerun.offload.wire.Malformed;
import dev.forerun.offload.wire.Out;
import java.net.URI;
import java.nio.charset.Charset;
import java.time.ZoneId;
import java.util.Currency;
import java.util.Locale;
import java.util.regex.Pattern;

/** JDK objects that their text makes again. */
final class Texts {
  private Texts() {}

  static boolean isText(Object object) {
    return object instanceof Locale
        || object instanceof Charset
        || object instanceof Pattern
        || object instanceof ZoneId
        || object instanceof Currency
        || object instanceof URI;
  }

  static void write(Out out, Object object) {
    if (object instanceof Locale locale) {
      out.u8(0).i32(0).text(locale.toLanguageTag());
    } else if (object instanceof Charset charset) {
      out.u8(1).i32(0).text(charset.name());
    } else if (object instanceof Pattern pattern) {
      out.u8(2).i32(pattern.flags()).text(pattern.pattern());
    } else if (object instanceof ZoneId zone) {
      out.u8(3).i32(0).text(zone.getId());
    } else if (object instanceof Currency currency) {
      out.u8(4).i32(0).text(currency.getCurrencyCode());
    } else {
      out.u8(5).i32(0).text(object.toString());
    }
  }

  static Object read(In in) {
    int form = in.u8();
    int flags = in.i32();
    String text = in.text();
    try {
      return switch (form) {
        case 0 -> Locale.forLanguageTag(text);
        case 1 -> Charset.forName(text);
        case 2 -> Pattern.compile(text, flags);
        case 3 -> ZoneId.of(text);
        case 4 -> Currency.getInstance(text);
        case 5 -> URI.create(text);
        default -> throw new Malformed("a text has an unknown form");
      };
    } catch (IllegalArgumentException | java.time.DateTimeException e) {
      throw new Malformed("a text is not valid: " + e);
    }
  }
}
