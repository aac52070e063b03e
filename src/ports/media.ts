/** What a file of an image turned out to be. */
export interface ImageFacts {
  /** Its real MIME type. */
  readonly mimeType: string;
  /** As it is to be shown: its EXIF orientation is applied. Of an animation, one frame. */
  readonly width: number;
  readonly height: number;
}

/** A file, and what its reader has at hand of it already. */
export interface MediaFile {
  /** Path of the file in this machine. */
  readonly path: string;
  /** Its first bytes: `HEAD_BYTES` of them, fewer only if there are no more. */
  readonly head: Buffer;
  /** Its last two bytes. */
  readonly tail: Buffer;
  /** Names whose file it is: the files of different owners take turns. */
  readonly owner: string;
}

/** Enough for every signature that matters, and for what stands before the pixels of most images. */
export const HEAD_BYTES = 64 * 1024;

/**
 * Looks into files of images, sound and video, which may be made to do harm. Nothing here holds up the event loop for long, and
 * little runs at once; the files of one owner wait in their order, those of different owners take turns.
 */
export interface Media {
  /** The MIME type that the content shows, without parameters; undefined when it shows none that is known. */
  sniff(file: MediaFile): Promise<string | undefined>;
  /**
   * Facts of an image that can be decoded; null for one that can't, is cut off or has more than 50 million pixels.
   *
   * @param admit called with the pixels of the image before they are decoded; what it throws is thrown, and nothing is decoded.
   *   Not called for a JPEG, of which only head and end are read
   */
  image(file: MediaFile, admit: (pixels: number) => void): Promise<ImageFacts | null>;
  /** Milliseconds of sound or video; undefined when they can't be found out within 2 seconds. */
  duration(file: MediaFile, mimeType: string): Promise<number | undefined>;
  /** A JPEG of 200x200 pixels, cut to the middle, upright, transparency on white; null when the image can't be decoded. */
  thumbnail(image: Buffer): Promise<Buffer | null>;
}
