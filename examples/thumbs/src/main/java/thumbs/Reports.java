package thumbs;

import java.awt.image.BufferedImage;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import javax.imageio.ImageIO;
import org.springframework.stereotype.Service;

/** Tells which colours the pictures have. */
@Service
public class Reports {
  private static final int SHADES = 4;

  private final Album album;

  Reports(Album album) {
    this.album = album;
  }

  /** The part of a picture that has a colour, in thousandths. */
  public record Share(String colour, long thousandths) {}

  /** The three colours that each picture has most of, by its name. */
  public Map<String, List<Share>> colours() {
    return album.all().stream().collect(Collectors.toMap(Picture::name, Reports::ofOne, (a, b) -> a, TreeMap::new));
  }

  private static List<Share> ofOne(Picture picture) {
    BufferedImage image;
    try {
      image = ImageIO.read(new ByteArrayInputStream(picture.content()));
    } catch (IOException e) {
      throw new IllegalStateException("%s cannot be read".formatted(picture.name()), e);
    }
    Map<Integer, Long> counts = new TreeMap<>();
    for (int y = 0; y < image.getHeight(); y++) {
      for (int x = 0; x < image.getWidth(); x++) {
        counts.merge(shades(image.getRGB(x, y)), 1L, Long::sum);
      }
    }
    long all = (long) image.getWidth() * image.getHeight();
    return counts.entrySet().stream()
        .sorted(Map.Entry.<Integer, Long>comparingByValue(Comparator.reverseOrder()).thenComparing(Map.Entry.comparingByKey()))
        .limit(3)
        .map(entry -> new Share("#%06x".formatted(entry.getKey()), entry.getValue() * 1000 / all))
        .toList();
  }

  private static int shades(int rgb) {
    int coarse = 0;
    for (int shift = 16; shift >= 0; shift -= 8) {
      coarse |= ((rgb >> shift & 255) * SHADES / 256 * 255 / (SHADES - 1)) << shift;
    }
    return coarse;
  }
}
