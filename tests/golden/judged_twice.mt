# What evaluation computes and training does not: the same layer, called once more.
data {
  train = idx("images", "labels")
  image : u8[1, 4, 4]
  label : class[3]
}

model {
  layer judge(v) = linear(flatten(v), 3)
  scores = judge(image)
  if not training() {
    scores = (scores + judge(flip(image, axis = 2))) / where(training(), 3, 2)
  }
}

train {
  loss      = cross_entropy(scores, label)
  optimizer = sgd(0.1)
}
