package thumbs;

import org.springframework.boot.context.properties.ConfigurationProperties;

/**
 * The form of thumbnails.
 *
 * @param quality of JPEG, from 0 to 1
 * @param widest the most pixels that a thumbnail is wide
 */
@ConfigurationProperties("thumbs")
public record Settings(float quality, int widest) {}
