data {
  train = idx("images", "labels")
  image : u8[3, 16, 16]
  label : class[10]
}

model {
  h      = whiten(image, image, 10)
  scores = linear(flatten(relu(h)), 10)
}

train {
  loss      = cross_entropy(scores, label)
  optimizer = sgd(0.1)
}
