data {
  train = idx("images", "labels")
  image : u8[3, 4, 8]
  label : class[10]
}

model {
  h      = pad(image, 1, before = 1, mode = "reflected")
  scores = linear(flatten(h), 10)
}

train {
  loss      = cross_entropy(scores, label)
  optimizer = sgd(0.1)
}
