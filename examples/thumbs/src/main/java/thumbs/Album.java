package thumbs;

import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;
import org.springframework.stereotype.Repository;

/** The pictures, in memory. */
@Repository
public class Album {
  private final Map<String, Picture> pictures = new ConcurrentSkipListMap<>();

  void add(String name, byte[] content) {
    pictures.put(name, new Picture(name, Instant.now(), content));
  }

  Picture find(String name) {
    Picture picture = pictures.get(name);
    if (picture == null) {
      throw new NoSuchPicture(name);
    }
    return picture;
  }

  List<Picture> all() {
    return List.copyOf(pictures.values());
  }
}
