package thumbs;

import java.time.Instant;

/** A picture of the album. */
public final class Picture {
  private final String name;
  private final Instant added;
  private final byte[] content;
  private int thumbnails;

  Picture(String name, Instant added, byte[] content) {
    this.name = name;
    this.added = added;
    this.content = content;
  }

  public String name() {
    return name;
  }

  public Instant added() {
    return added;
  }

  byte[] content() {
    return content;
  }

  public synchronized int thumbnails() {
    return thumbnails;
  }

  synchronized int counted() {
    return ++thumbnails;
  }
}
