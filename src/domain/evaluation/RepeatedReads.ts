/** Counts how often files were read, and the tokens of the repeats. `Place` identifies the message of an output. Mutable. */
export class RepeatedReads<Place> {
  private readonly files = new Map<
    string,
    { reads: number; tokens: number; repeated: number; readonly places: Array<Place> }
  >()

  /** Adds one output that holds these files. Its tokens are divided evenly among them. */
  add(paths: ReadonlySet<string>, tokens: number, place: Place): void {
    let spare = tokens % Math.max(1, paths.size)
    for (const path of paths) {
      const file = this.files.get(path) ?? { reads: 0, tokens: 0, repeated: 0, places: [] }
      this.files.set(path, file)
      const own = Math.floor(tokens / paths.size) + (spare > 0 ? 1 : 0)
      spare -= 1
      file.tokens += own
      if (file.reads > 0) file.repeated += own
      file.reads += 1
      file.places.push(place)
    }
  }

  /** Returns the files that were read more than once, by the tokens of the repeats. */
  repeated<Name>(nameOf: (place: Place) => Name) {
    return [...this.files]
      .flatMap(([path, { places, ...file }]) =>
        file.reads > 1 ? [{ path, ...file, entries: places.map(nameOf) }] : []
      )
      .sort((a, b) => b.repeated - a.repeated)
  }
}
