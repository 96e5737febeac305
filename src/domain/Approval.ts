import { Schema } from "effect"

/** Which calls run without asking a person (`--approve`): none that changes anything, edits of files, or all. */
export const ApprovalMode = Schema.Literals(["none", "edits", "all"])
export type ApprovalMode = typeof ApprovalMode.Type

/** What a person may say to a call. `no` may carry a word to the model. */
export type Answer =
  | { readonly _tag: "Once" }
  /** This and all that its grants cover, until the program ends. */
  | { readonly _tag: "Session" }
  /** The same from now on; kept in the settings. */
  | { readonly _tag: "Always" }
  | { readonly _tag: "No"; readonly words: string }

/** Whether a call may run. */
export type Decision = { readonly _tag: "Allowed" } | { readonly _tag: "Denied"; readonly words: string }

/** The grant that stands for edits of files. */
export const editGrant = "edit"

/** Whether a call with these grants runs unasked. One that has none is asked for each time, unless all is allowed. */
export const isAllowed = (mode: ApprovalMode, granted: ReadonlySet<string>, grants: ReadonlyArray<string>): boolean =>
  mode === "all" ||
  (grants.length > 0 && grants.every((grant) => granted.has(grant) || (mode === "edits" && grant === editGrant)))
