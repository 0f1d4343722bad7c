package org.springframework.stereotype;

import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;

/** Stands for Spring's. */
@Retention(RetentionPolicy.RUNTIME)
public @interface Service {}
