package thumbs;

import java.awt.Graphics2D;
import java.awt.RenderingHints;
import java.awt.image.BufferedImage;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import javax.imageio.IIOImage;
import javax.imageio.ImageIO;
import javax.imageio.ImageWriteParam;
import javax.imageio.ImageWriter;
import javax.imageio.stream.MemoryCacheImageOutputStream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.context.ApplicationEventPublisher;
import org.springframework.stereotype.Service;

/** Makes thumbnails. */
@Service
public class Thumbnailer {
  private static final Logger LOG = LoggerFactory.getLogger(Thumbnailer.class);

  private final Album album;
  private final Settings settings;
  private final ApplicationEventPublisher events;

  Thumbnailer(Album album, Settings settings, ApplicationEventPublisher events) {
    this.album = album;
    this.settings = settings;
    this.events = events;
  }

  /** A thumbnail was made. */
  record Made(Picture picture, int width, int number) {}

  /**
   * Makes a thumbnail of a picture.
   *
   * @param width in pixels
   * @return a JPEG
   */
  public byte[] thumbnail(String name, int width) throws IOException {
    if (width < 1 || width > settings.widest()) {
      throw new IllegalArgumentException("a thumbnail is 1 to %d pixels wide".formatted(settings.widest()));
    }
    Picture picture = album.find(name);
    BufferedImage image = ImageIO.read(new ByteArrayInputStream(picture.content()));
    byte[] thumbnail = jpeg(scaled(image, width));
    LOG.info("{} has a thumbnail {} pixels wide", name, width);
    events.publishEvent(new Made(picture, width, picture.counted()));
    return thumbnail;
  }

  /** Halves the picture as long as that is possible, so that each pixel counts. */
  private static BufferedImage scaled(BufferedImage image, int width) {
    BufferedImage at = image;
    while (true) {
      int next = Math.max(width, at.getWidth() / 2);
      int height = Math.max(1, (int) ((long) at.getHeight() * next / at.getWidth()));
      BufferedImage half = new BufferedImage(next, height, BufferedImage.TYPE_INT_RGB);
      Graphics2D graphics = half.createGraphics();
      graphics.setRenderingHint(RenderingHints.KEY_INTERPOLATION, RenderingHints.VALUE_INTERPOLATION_BILINEAR);
      graphics.drawImage(at, 0, 0, next, height, null);
      graphics.dispose();
      at = half;
      if (next == width) {
        return at;
      }
    }
  }

  private byte[] jpeg(BufferedImage image) throws IOException {
    ImageWriter writer = ImageIO.getImageWritersByFormatName("jpeg").next();
    ImageWriteParam how = writer.getDefaultWriteParam();
    how.setCompressionMode(ImageWriteParam.MODE_EXPLICIT);
    how.setCompressionQuality(settings.quality());
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (MemoryCacheImageOutputStream out = new MemoryCacheImageOutputStream(bytes)) {
      writer.setOutput(out);
      writer.write(null, new IIOImage(image, null, null), how);
    } finally {
      writer.dispose();
    }
    return bytes.toByteArray();
  }
}
