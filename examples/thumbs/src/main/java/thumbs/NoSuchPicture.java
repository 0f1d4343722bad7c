package thumbs;

/** The album has no picture of a name. */
public class NoSuchPicture extends RuntimeException {
  private static final long serialVersionUID = 1;

  NoSuchPicture(String name) {
    super("there is no picture " + name);
  }
}
