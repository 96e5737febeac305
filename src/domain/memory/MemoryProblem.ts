/** Why memory files and their imports are left out. Paths are as shown to the user unless noted as absolute. */

/** Faults without details, in words. */
const plainFaults = {
  Missing: "there is no such file",
  Folder: "it is a folder",
  Binary: "it is binary, and memory is text",
  Changed: "it changed while it was being read",
  LinkCircle: "its links form a cycle",
  LeadsToUntrusted: "it leads into a folder that is not trusted",
  InvalidExtension: "expected a file of at most 1 MiB",
  // Only imports have the faults below.
  Untrusted: "its folder is not trusted",
  Address: "only files can be imported, not addresses",
  NoPath: "it is not a path"
}

/** Why a file is not read. */
export type MemoryFault =
  | { readonly _tag: keyof typeof plainFaults }
  /** `kind` is a kind of file in words, such as `a device`. */
  | { readonly _tag: "NotRegular"; readonly kind: string }
  | { readonly _tag: "TooLarge"; readonly bytes: number }
  /** `detail` is the disk's or the parser's message. */
  | { readonly _tag: "Unreadable"; readonly detail: string }
  | { readonly _tag: "LeadsOut"; readonly folders: ReadonlyArray<string> }
  | { readonly _tag: "OtherOwner"; readonly folder: string }
  /** An import. All files involved, absolute with links resolved. */
  | { readonly _tag: "Circle"; readonly files: ReadonlyArray<string> }
  /** An import. */
  | { readonly _tag: "TotalTooLarge"; readonly file: string }

/** A fault in words, in one line. */
export const memoryFaultText = (fault: MemoryFault): string => {
  switch (fault._tag) {
    case "NotRegular":
      return `it is ${fault.kind}, and only regular files are read`
    case "TooLarge":
      return `it has ${(fault.bytes / 1_048_576).toFixed(1)} MiB, and memory files of more than 1 MiB are not read`
    case "Unreadable":
      return fault.detail
    case "LeadsOut":
      return `it leads out of ${fault.folders.join(" and ")}`
    case "OtherOwner":
      return `its owner is not the owner of ${fault.folder}, so it was left out`
    case "Circle":
      return "it is already being imported, so it imports itself"
    case "TotalTooLarge":
      return `${fault.file} with its imports would have more than 1 MiB`
    default:
      return plainFaults[fault._tag]
  }
}

/** A memory file that was left out, or something that it imports. */
export type MemoryProblem = { readonly file: string } & (
  | { readonly _tag: "LeftOut"; readonly fault: MemoryFault }
  | { readonly _tag: "NotImported"; readonly path: string; readonly fault: MemoryFault }
  /** More than `depth` files import one another. */
  | { readonly _tag: "TooDeep"; readonly depth: number }
  /** Only `room` of its characters are read, because of the setting `memory.<setting>`. */
  | {
      readonly _tag: "Cut"
      readonly chars: number
      readonly room: number
      readonly setting: "fileChars" | "totalChars"
    }
)

/** A problem in words, in one line. */
export const memoryProblemText = (problem: MemoryProblem): string => {
  switch (problem._tag) {
    case "LeftOut":
      return `${problem.file}: ${memoryFaultText(problem.fault)}`
    case "NotImported":
      return `${problem.file}: @${problem.path} was not imported: ${memoryFaultText(problem.fault)}`
    case "TooDeep":
      return `${problem.file}: its imports were left out: more than ${problem.depth} files import one another`
    case "Cut":
      return `${problem.file}: has ${problem.chars} characters, of which ${problem.room} are read (memory.${problem.setting})`
  }
}

/** Leaves out repeated problems. A circle of imports is reported once, not for every way into it. */
export const distinctProblems = (problems: ReadonlyArray<MemoryProblem>): ReadonlyArray<MemoryProblem> => {
  const byText = new Map<string, MemoryProblem>()
  const reported = new Set<string>()
  for (const problem of problems) {
    const circle = problem._tag === "NotImported" && problem.fault._tag === "Circle" ? problem.fault.files : []
    if (circle.some((file) => reported.has(file))) continue
    for (const file of circle) reported.add(file)
    byText.set(memoryProblemText(problem), problem)
  }
  return [...byText.values()]
}
