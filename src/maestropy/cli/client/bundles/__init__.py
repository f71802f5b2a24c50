"""`maestro resourcebundle`: find, read, apply, compare, edit, await and delete resource bundles."""
