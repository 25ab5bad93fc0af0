data {
  train = idx("images", "labels")
  image : u8[4, 8, 8]
  label : class[10]
}

model {
  h      = conv2d(image, 4, 3, groups = 2, init = dirac())
  scores = linear(flatten(h), 10)
}

train {
  loss      = cross_entropy(scores, label)
  optimizer = sgd(0.1)
}
