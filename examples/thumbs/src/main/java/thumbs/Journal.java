package thumbs;

import java.util.ArrayList;
import java.util.List;
import org.springframework.context.event.EventListener;
import org.springframework.stereotype.Component;

/** Keeps the last thumbnails. */
@Component
public class Journal {
  private static final int KEPT = 100;

  private final List<String> entries = new ArrayList<>();

  @EventListener
  synchronized void made(Thumbnailer.Made made) {
    if (entries.size() == KEPT) {
      entries.remove(0);
    }
    entries.add("%s, %d wide, number %d".formatted(made.picture().name(), made.width(), made.number()));
  }

  /** The last thumbnails, the oldest first. */
  synchronized List<String> entries() {
    return List.copyOf(entries);
  }
}
