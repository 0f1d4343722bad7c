package sample.library;

/** A class of a library, whose objects stay on the server unless the function makes them. */
public class Base {
  public static int made;
  public int count = 1;
  public long wide = 1L << 40;
  public String name;

  /** Makes one. */
  public Base(String name) {
    this.name = name;
  }

  /** What it is. */
  public final String tell() {
    return name + count + wide;
  }

  @Override
  public String toString() {
    return tell();
  }
}
