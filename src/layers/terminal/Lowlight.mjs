import { common, createLowlight } from "lowlight"

export const make = () => createLowlight(common)
