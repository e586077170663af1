"""The bundled tiny model: written here in both forms that engines load, with the standard library alone."""
