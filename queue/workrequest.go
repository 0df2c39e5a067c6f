package queue

// OperationType is what a work request does (OCI reference 3.8).
type OperationType string

const (
	CreateQueue OperationType = "CREATE_QUEUE"
	UpdateQueue OperationType = "UPDATE_QUEUE"
	DeleteQueue OperationType = "DELETE_QUEUE"
	MoveQueue   OperationType = "MOVE_QUEUE"
	PurgeQueue  OperationType = "PURGE_QUEUE"

	CreateConsumerGroup OperationType = "CREATE_CONSUMER_GROUP"
	UpdateConsumerGroup OperationType = "UPDATE_CONSUMER_GROUP"
	DeleteConsumerGroup OperationType = "DELETE_CONSUMER_GROUP"
)

// WorkStatus is how far a work request has come.
type WorkStatus string

const (
	Accepted   WorkStatus = "ACCEPTED"
	InProgress WorkStatus = "IN_PROGRESS"
	WorkFailed WorkStatus = "FAILED"
	Succeeded  WorkStatus = "SUCCEEDED"
)

// ActionType is what a work request did to a resource.
type ActionType string

const (
	ActionCreated    ActionType = "CREATED"
	ActionUpdated    ActionType = "UPDATED"
	ActionDeleted    ActionType = "DELETED"
	ActionInProgress ActionType = "IN_PROGRESS"
)

// WorkRequest is the record of a control-plane operation. Ours are finished
// when they are answered, so FinishedAt is always set.
type WorkRequest struct {
	ID            string
	Operation     OperationType
	Status        WorkStatus
	CompartmentID string
	Resources     []WorkResource
	Percent       float32 // 0 to 100
	AcceptedAt    Instant
	StartedAt     Instant
	FinishedAt    Instant
	Logs          []WorkLog
	Errors        []WorkError
}

// WorkResource is one thing a work request touches.
type WorkResource struct {
	EntityType string // exactly "queue" or "consumergroup": clients look for it
	Action     ActionType
	Identifier string
	EntityURI  string // the GET path of the resource
}

// WorkLog is one line of a work request's log.
type WorkLog struct {
	Message string
	At      Instant
}

// WorkError is one failure of a work request.
type WorkError struct {
	Code    Code
	Message string
	At      Instant
}
