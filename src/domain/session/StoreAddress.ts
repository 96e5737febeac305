/** Where sessions are stored: what `PALIMPSEST_STORE`, the setting `store` and `sessions copy --to` name. */
export type StoreAddress =
  /** Files of a folder; undefined is the folder of the command line. */
  | { readonly _tag: "Files"; readonly folder: string | undefined }
  | { readonly _tag: "Sqlite"; readonly file: string }
  | { readonly _tag: "Postgres"; readonly url: string }

/** The valid addresses, for messages. */
export const storeAddressForms = "files, files:FOLDER, sqlite:FILE or postgres://USER@HOST/DATABASE"

/** Reads an address; undefined when it is not one. A path that begins with `~/` is in `home`. */
export const parseStoreAddress = (text: string, home: string): StoreAddress | undefined => {
  const [, scheme = "", rest = ""] = /^([a-z]+):(.*)$/s.exec(text.trim()) ?? []
  const place = rest.startsWith("~/") ? `${home}${rest.slice(1)}` : rest
  if (text.trim() === "files") return { _tag: "Files", folder: undefined }
  if (place === "") return undefined
  if (scheme === "files") return { _tag: "Files", folder: place }
  if (scheme === "sqlite") return { _tag: "Sqlite", file: place }
  if ((scheme === "postgres" || scheme === "postgresql") && rest.startsWith("//") && URL.canParse(text.trim())) {
    return { _tag: "Postgres", url: text.trim() }
  }
  return undefined
}
