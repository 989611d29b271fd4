// Pins of a registry for tests: what `addon-operator devcluster` builds when it is not at hand. No code is kept here.
module devcluster/registry

go 1.26.0

tool github.com/google/go-containerregistry/cmd/registry

require github.com/google/go-containerregistry v0.22.1 // indirect
