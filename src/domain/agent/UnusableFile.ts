/** A file or folder of agents or skills that was left out or not read to its end. */
export interface UnusableFile {
  readonly file: string
  /** Why, in words. */
  readonly reason: string
}

/** A problem in words, in one line: the file, and what was expected. */
export const unusableFileText = ({ file, reason }: UnusableFile): string => `${file}: ${reason}`
