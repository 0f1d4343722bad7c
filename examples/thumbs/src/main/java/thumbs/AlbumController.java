package thumbs;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import org.springframework.http.HttpStatus;
import org.springframework.http.MediaType;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PutMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestController;

/** The album over HTTP. */
@RestController
public class AlbumController {
  private final Album album;
  private final Thumbnailer thumbnailer;
  private final Reports reports;
  private final Journal journal;

  AlbumController(Album album, Thumbnailer thumbnailer, Reports reports, Journal journal) {
    this.album = album;
    this.thumbnailer = thumbnailer;
    this.reports = reports;
    this.journal = journal;
  }

  @PutMapping("/pictures/{name}")
  @ResponseStatus(HttpStatus.NO_CONTENT)
  void put(@PathVariable("name") String name, @RequestBody byte[] content) {
    album.add(name, content);
  }

  @GetMapping("/pictures")
  Map<String, Integer> list() {
    Map<String, Integer> thumbnails = new java.util.LinkedHashMap<>();
    album.all().forEach(picture -> thumbnails.put(picture.name(), picture.thumbnails()));
    return thumbnails;
  }

  @GetMapping(value = "/pictures/{name}/thumbnail", produces = MediaType.IMAGE_JPEG_VALUE)
  byte[] thumbnail(@PathVariable("name") String name, @RequestParam(name = "width", defaultValue = "120") int width) throws IOException {
    return thumbnailer.thumbnail(name, width);
  }

  @GetMapping("/report")
  Map<String, List<Reports.Share>> report() {
    return reports.colours();
  }

  @GetMapping("/journal")
  List<String> journal() {
    return journal.entries();
  }

  @ExceptionHandler(NoSuchPicture.class)
  @ResponseStatus(HttpStatus.NOT_FOUND)
  Map<String, String> missing(NoSuchPicture e) {
    return Map.of("error", e.getMessage());
  }

  @ExceptionHandler(IllegalArgumentException.class)
  @ResponseStatus(HttpStatus.BAD_REQUEST)
  Map<String, String> wrong(IllegalArgumentException e) {
    return Map.of("error", e.getMessage());
  }
}
